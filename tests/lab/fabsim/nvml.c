/* libnvidia-ml.so.1 for the lab: answers from what the guest's kernel shows of each NVIDIA function, so that the two
 * never disagree. P0 always (a conclusive sample), no NVLink, no MIG. A function whose config space reads ff is
 * GPU_IS_LOST. Symbols that are not here are what an older driver lacks. FABSIM_GPU="name|memory MiB|architecture|cc
 * major|cc minor" says what the cards are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <unistd.h>
#define OK 0
#define UNINIT 1
#define INVAL 2
#define NS 3
#define NOTFOUND 6
#define LOST 15
typedef unsigned int u;
typedef unsigned long long ull;
struct gpu {
	char bdf[16];
	u dom, bus, dev, id, sub;
	int numa;
	char path[512];
};
static struct gpu g[32];
static u n;
static int up;
static char name[64] = "NVIDIA GPU";
static ull mib = 81559;
static int arch = 9, cc0 = 9, cc1;

static int rd(const char *bdf, const char *f, char *b, int len)
{
	char p[128];
	FILE *h;
	int k;
	snprintf(p, sizeof p, "/sys/bus/pci/devices/%s/%s", bdf, f);
	if (!(h = fopen(p, "r")))
		return -1;
	k = fread(b, 1, len - 1, h);
	fclose(h);
	b[k < 0 ? 0 : k] = 0;
	return k;
}
static u hexof(const char *bdf, const char *f)
{
	char b[32];
	return rd(bdf, f, b, sizeof b) > 0 ? strtoul(b, 0, 16) : 0;
}
static int cmp(const void *a, const void *b)
{
	return strcmp(((struct gpu *)a)->bdf, ((struct gpu *)b)->bdf);
}
static int lost(struct gpu *x)
{
	unsigned char b[8];
	return rd(x->bdf, "config", (char *)b, 5) >= 2 && b[0] == 0xff && b[1] == 0xff;
}
static int num(struct gpu *x, const char *f)
{
	char b[32];
	return rd(x->bdf, f, b, sizeof b) > 0 ? atoi(b) : -1;
}
static int gen(struct gpu *x, const char *f)
{
	static const double s[] = {2.5, 5, 8, 16, 32, 64};
	char b[32];
	int i;
	double v;
	if (rd(x->bdf, f, b, sizeof b) <= 0)
		return -1;
	for (v = atof(b), i = 0; i < 6; i++)
		if (v == s[i])
			return i + 1;
	return -1;
}
int nvmlInitWithFlags(u f)
{
	DIR *d = opendir("/sys/bus/pci/devices");
	struct dirent *e;
	char *s = getenv("FABSIM_GPU");
	FILE *h;
	static char cf[128];
	if (!s && (h = fopen("/etc/fabsim-gpu", "r"))) {
		if (fgets(cf, sizeof cf, h))
			s = cf;
		fclose(h);
	}
	if (s)
		sscanf(s, "%63[^|]|%llu|%d|%d|%d", name, &mib, &arch, &cc0, &cc1);
	n = 0;
	up = 1;
	while (d && (e = readdir(d)) && n < 32) {
		struct gpu *x = &g[n];
		char p[64];
		int k;
		if (e->d_name[0] == '.' || hexof(e->d_name, "vendor") != 0x10de || hexof(e->d_name, "class") >> 16 != 3)
			continue;
		memset(x, 0, sizeof *x);
		snprintf(x->bdf, sizeof x->bdf, "%.15s", e->d_name);
		sscanf(x->bdf, "%x:%x:%x", &x->dom, &x->bus, &x->dev);
		x->id = hexof(x->bdf, "device") << 16 | 0x10de;
		x->sub = hexof(x->bdf, "subsystem_device") << 16 | hexof(x->bdf, "subsystem_vendor");
		x->numa = num(x, "numa_node");
		snprintf(p, sizeof p, "/sys/bus/pci/devices/%s", x->bdf);
		k = readlink(p, x->path, sizeof x->path - 1);
		x->path[k < 0 ? 0 : k] = 0;
		n++;
	}
	if (d)
		closedir(d);
	qsort(g, n, sizeof *g, cmp);
	return OK;
}
int nvmlInit_v2(void)
{
	return nvmlInitWithFlags(0);
}
int nvmlInit(void)
{
	return nvmlInitWithFlags(0);
}
int nvmlShutdown(void)
{
	return up ? (up = 0, OK) : UNINIT;
}
const char *nvmlErrorString(int e)
{
	return e == OK	       ? "Success"
	       : e == NS       ? "Not Supported"
	       : e == LOST     ? "GPU is lost"
	       : e == INVAL    ? "Invalid Argument"
	       : e == NOTFOUND ? "Not Found"
			       : "Unknown Error";
}
static int str(char *b, u l, const char *s)
{
	if (strlen(s) >= l)
		return 7;
	strcpy(b, s);
	return OK;
}
int nvmlSystemGetDriverVersion(char *b, u l)
{
	return str(b, l, "570.124.06");
}
int nvmlSystemGetNVMLVersion(char *b, u l)
{
	return str(b, l, "12.570.124.06");
}
int nvmlSystemGetCudaDriverVersion(int *v)
{
	*v = 12080;
	return OK;
}
int nvmlSystemGetCudaDriverVersion_v2(int *v)
{
	*v = 12080;
	return OK;
}
int nvmlDeviceGetCount_v2(u *c)
{
	*c = n;
	return OK;
}
int nvmlDeviceGetCount(u *c)
{
	*c = n;
	return OK;
}
int nvmlDeviceGetHandleByIndex_v2(u i, struct gpu **x)
{
	if (i >= n)
		return INVAL;
	if (lost(&g[i]))
		return LOST;
	*x = &g[i];
	return OK;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *s, struct gpu **x)
{
	u d, b, v, i;
	if (sscanf(s, "%x:%x:%x", &d, &b, &v) != 3)
		return INVAL;
	for (i = 0; i < n; i++)
		if (g[i].dom == d && g[i].bus == b && g[i].dev == v)
			return nvmlDeviceGetHandleByIndex_v2(i, x);
	return NOTFOUND;
}
#define ALIVE                                                                                                          \
	if (lost(x))                                                                                                   \
	return LOST
struct pci {
	char legacy[16];
	u domain, bus, device, id, sub;
	char busid[32];
};
int nvmlDeviceGetPciInfo_v3(struct gpu *x, struct pci *p)
{
	snprintf(p->legacy, 16, "%04X:%02X:%02X.0", x->dom & 0xffff, x->bus & 0xff, x->dev & 0x1f);
	snprintf(p->busid, 32, "%08X:%02X:%02X.0", x->dom, x->bus, x->dev);
	p->domain = x->dom;
	p->bus = x->bus;
	p->device = x->dev;
	p->id = x->id;
	p->sub = x->sub;
	return OK;
}
int nvmlDeviceGetIndex(struct gpu *x, u *i)
{
	*i = x - g;
	return OK;
}
int nvmlDeviceGetMinorNumber(struct gpu *x, u *i)
{
	*i = x - g;
	return OK;
}
int nvmlDeviceGetName(struct gpu *x, char *b, u l)
{
	ALIVE;
	return str(b, l, name);
}
int nvmlDeviceGetUUID(struct gpu *x, char *b, u l)
{
	char t[64];
	ALIVE;
	snprintf(t, sizeof t, "GPU-5fab51%02x-%04x-4c0d-9e21-00000000%02x%02x", x->bus, x->dom, x->bus, x->dev);
	return str(b, l, t);
}
int nvmlDeviceGetSerial(struct gpu *x, char *b, u l)
{
	char t[32];
	snprintf(t, sizeof t, "16504230%05u", x->bus * 37 + x->dom);
	return str(b, l, t);
}
int nvmlDeviceGetVbiosVersion(struct gpu *x, char *b, u l)
{
	return str(b, l, "96.00.61.00.01");
}
int nvmlDeviceGetArchitecture(struct gpu *x, u *a)
{
	ALIVE;
	*a = arch;
	return OK;
}
int nvmlDeviceGetCudaComputeCapability(struct gpu *x, int *a, int *b)
{
	ALIVE;
	*a = cc0;
	*b = cc1;
	return OK;
}
int nvmlDeviceGetBusType(struct gpu *x, u *t)
{
	*t = 2;
	return OK;
}
int nvmlDeviceGetPerformanceState(struct gpu *x, u *p)
{
	ALIVE;
	*p = 0;
	return OK;
}
int nvmlDeviceGetPersistenceMode(struct gpu *x, u *m)
{
	ALIVE;
	*m = 1;
	return OK;
}
int nvmlDeviceGetUtilizationRates(struct gpu *x, u *r)
{
	ALIVE;
	r[0] = 3;
	r[1] = 1;
	return OK;
}
int nvmlDeviceGetCurrPcieLinkGeneration(struct gpu *x, u *v)
{
	int k;
	ALIVE;
	k = gen(x, "current_link_speed");
	if (k < 0)
		return NS;
	*v = k;
	return OK;
}
int nvmlDeviceGetCurrPcieLinkWidth(struct gpu *x, u *v)
{
	int k;
	ALIVE;
	k = num(x, "current_link_width");
	if (k < 0)
		return NS;
	*v = k;
	return OK;
}
int nvmlDeviceGetMaxPcieLinkGeneration(struct gpu *x, u *v)
{
	ALIVE;
	*v = gen(x, "max_link_speed");
	return OK;
}
int nvmlDeviceGetGpuMaxPcieLinkGeneration(struct gpu *x, u *v)
{
	ALIVE;
	*v = gen(x, "max_link_speed");
	return OK;
}
int nvmlDeviceGetMaxPcieLinkWidth(struct gpu *x, u *v)
{
	ALIVE;
	*v = num(x, "max_link_width");
	return OK;
}
int nvmlDeviceGetPcieReplayCounter(struct gpu *x, u *v)
{
	ALIVE;
	*v = 0;
	return OK;
}
int nvmlDeviceGetMemoryInfo(struct gpu *x, ull *m)
{
	ALIVE;
	m[0] = mib << 20;
	m[1] = (mib - 500) << 20;
	m[2] = 500ull << 20;
	return OK;
}
int nvmlDeviceGetBAR1MemoryInfo(struct gpu *x, ull *m)
{
	ALIVE;
	m[0] = 131072ull << 20;
	m[1] = 131070ull << 20;
	m[2] = 2ull << 20;
	return OK;
}
int nvmlDeviceGetVirtualizationMode(struct gpu *x, u *m)
{
	ALIVE;
	*m = 0;
	return OK;
}
int nvmlDeviceGetP2PStatus(struct gpu *x, struct gpu *y, int i, u *s)
{
	*s = i == 2 ? 5 : 0;
	return OK;
}
int nvmlDeviceGetTopologyCommonAncestor(struct gpu *x, struct gpu *y, u *l)
{
	int i, last = 0, depth = 0;
	ALIVE;
	if (x == y) {
		*l = 0;
		return OK;
	}
	for (i = 0; x->path[i] && x->path[i] == y->path[i]; i++)
		if (x->path[i] == '/') {
			last = i;
		}
	for (i = 0; i < last; i++)
		if (!strncmp(x->path + i, "/pci", 4)) {
			for (i++; i <= last; i++)
				if (x->path[i] == '/')
					depth++;
		}
	/* depth: components of the shared path after "devices": 0 other host bridge, 1 host bridge only, 3 one switch
	 * (port and its upstream) */
	*l = depth >= 4 ? 20 : depth >= 2 ? 10 : depth == 1 ? 30 : x->numa == y->numa ? 40 : 50;
	return OK;
}
struct fv {
	u id, scope;
	long long ts, lat;
	u type;
	int ret;
	ull v;
};
int nvmlDeviceGetFieldValues(struct gpu *x, int c, struct fv *f)
{
	ALIVE;
	for (; c > 0; c--, f++) {
		f->ret = f->id == 94 || f->id == 91 || f->id == 147 ? OK : NS;
		f->type = 1;
		f->v = 0;
	}
	return OK;
}
#define NOT(fn)                                                                                                        \
	int fn(void)                                                                                                   \
	{                                                                                                              \
		return NS;                                                                                             \
	}
NOT(nvmlDeviceGetMigMode)
NOT(nvmlDeviceGetNvLinkState) NOT(nvmlDeviceGetNvLinkVersion) NOT(nvmlDeviceGetNvLinkCapability)
	NOT(nvmlDeviceGetNvLinkRemotePciInfo_v2) NOT(nvmlDeviceGetNvLinkRemoteDeviceType)
		NOT(nvmlDeviceGetNvLinkErrorCounter) NOT(nvmlDeviceGetGpuFabricInfo) NOT(nvmlDeviceGetGpuFabricInfoV)
			NOT(nvmlDeviceGetC2cModeInfoV) NOT(nvmlDeviceGetNumaNodeId) NOT(nvmlDeviceGetModuleId)
				NOT(nvmlDeviceGetPcieThroughput) NOT(nvmlDeviceGetCpuAffinity)
					NOT(nvmlDeviceGetCpuAffinityWithinScope) NOT(nvmlDeviceGetMemoryAffinity)
