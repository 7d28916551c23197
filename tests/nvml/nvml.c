/* libnvidia-ml.so.1 for tests: answers are bytes of a table (tests/nvml/answers.py), one line each:
 *
 *     SYMBOL KEY CODE ACTION HEX[,HEX..]
 *
 * KEY: the numbers that the call was given, "0/3"; a device is its index. CODE: nvmlReturn_t. ACTION: "-", "hang" (for
 * ever), "crash". HEX: what is written behind each reference, "-" for nothing. A call without a line is one that this
 * driver does not have. The table is named by FABRICSCOPE_TEST_NVML, or stands at ANSWERS (of the lab's guest). nvml.h:
 * signatures as of R580. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, INSUFFICIENT_SIZE = 7, NOT_LOADED = 9, FUNCTION_NOT_FOUND = 13 };
enum { LINES = 1 << 20, OUTS = 4, BUCKETS = 1 << 13 };
#ifndef ANSWERS
#define ANSWERS NULL
#endif

struct row { char *symbol, *key, *action, *out[OUTS]; int code; struct row *next; };
static struct row *rows, *bucket[BUCKETS];
static size_t count;
static int users;

/* a table has some thousand lines, and an emulated CPU takes its time to compare them */
static struct row **place(const char *symbol, const char *key)
{
	unsigned hash = 5381;

	for (; *symbol; symbol++)
		hash = hash * 33 + (unsigned char)*symbol;
	for (; *key; key++)
		hash = hash * 33 + (unsigned char)*key;
	return &bucket[hash % BUCKETS];
}

static void load(void)
{
	const char *named = getenv("FABRICSCOPE_TEST_NVML"), *path = named ? named : ANSWERS;
	FILE *file = path ? fopen(path, "r") : NULL;
	char *line = NULL;
	size_t room = 0;

	if (rows || !file)
		return;
	rows = calloc(LINES, sizeof *rows);
	while (count < LINES && getline(&line, &room, file) > 0) {
		struct row *row = &rows[count++], **end;
		char *words, *parts, *outs;

		row->symbol = strtok_r(strdup(line), " \n", &words);
		row->key = strtok_r(NULL, " \n", &words);
		row->code = atoi(strtok_r(NULL, " \n", &words));
		row->action = strtok_r(NULL, " \n", &words);
		outs = strtok_r(NULL, " \n", &words);
		for (int i = 0; i < OUTS; i++, outs = NULL)
			row->out[i] = strtok_r(outs, ",", &parts);
		for (end = place(row->symbol, row->key); *end;) /* the first of two lines for a call holds */
			end = &(*end)->next;
		*end = row;
	}
	free(line);
	fclose(file);
}

static struct row *find(const char *symbol, const char *key)
{
	for (struct row *row = *place(symbol, key); row; row = row->next)
		if (!strcmp(row->symbol, symbol) && !strcmp(row->key, key))
			return row;
	return NULL;
}

static int act(const struct row *row)
{
	if (!row)
		return FUNCTION_NOT_FOUND;
	if (!strcmp(row->action, "hang"))
		for (;;)
			pause();
	if (!strcmp(row->action, "crash"))
		raise(SIGSEGV);
	return row->code;
}

static size_t bytes(const char *hex, void *out)
{
	size_t n = hex && strcmp(hex, "-") ? strlen(hex) / 2 : 0;

	for (size_t i = 0; i < n && out; i++) {
		char pair[3] = { hex[2 * i], hex[2 * i + 1], 0 };
		((uint8_t *)out)[i] = strtoul(pair, NULL, 16);
	}
	return n;
}

static int put(const char *symbol, const char *key, void *first, void *second)
{
	struct row *row = find(symbol, key);
	int code = users ? act(row) : UNINITIALIZED;

	if (code == SUCCESS) {
		bytes(row->out[0], first);
		bytes(row->out[1], second);
	}
	return code;
}

static int text(const char *symbol, const char *key, char *out, unsigned room)
{
	struct row *row = find(symbol, key);
	int code = users ? act(row) : UNINITIALIZED;

	if (code == SUCCESS && bytes(row->out[0], NULL) > room)
		return INSUFFICIENT_SIZE;
	if (code == SUCCESS)
		bytes(row->out[0], out);
	return code;
}

static int index_of(void *device) { return (int)(intptr_t)device - 1; }

#define KEY(...) char key[64]; snprintf(key, sizeof key, __VA_ARGS__)
#define SYSTEM(name) int name(void *out) { return put(#name, "-", out, NULL); }
#define DEVICE(name) int name(void *d, void *out) { KEY("%d", index_of(d)); return put(#name, key, out, NULL); }
#define DEVICE_TWO(name) int name(void *d, void *a, void *b) { KEY("%d", index_of(d)); return put(#name, key, a, b); }
#define DEVICE_TEXT(name) int name(void *d, char *out, unsigned n) { KEY("%d", index_of(d)); return text(#name, key, out, n); }
#define DEVICE_NUMBER(name) \
	int name(void *d, unsigned i, void *out) { KEY("%d/%u", index_of(d), i); return put(#name, key, out, NULL); }

int nvmlInitWithFlags(unsigned flags)
{
	int code;

	(void)flags;
	load();
	code = count ? act(find("nvmlInit_v2", "-")) : NOT_LOADED;
	users += code == SUCCESS;
	return code;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return users ? (users--, SUCCESS) : UNINITIALIZED; }
const char *nvmlErrorString(int code) { return code ? "an error of the test library" : "Success"; }

int nvmlSystemGetDriverVersion(char *out, unsigned n) { return text("nvmlSystemGetDriverVersion", "-", out, n); }
SYSTEM(nvmlSystemGetCudaDriverVersion_v2)
SYSTEM(nvmlSystemGetNvlinkBwMode)
SYSTEM(nvmlSystemGetConfComputeState)
SYSTEM(nvmlDeviceGetCount_v2)

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
	KEY("%u", index);
	struct row *row = find("nvmlDeviceGetHandleByIndex_v2", key);
	int code = !users ? UNINITIALIZED : row ? act(row) : INVALID_ARGUMENT;

	if (code == SUCCESS)
		*device = (void *)(intptr_t)(index + 1);
	return code;
}

/* a MIG instance is a device of its own, with an index past those of GPUs */
int nvmlDeviceGetMigDeviceHandleByIndex(void *d, unsigned instance, void **device)
{
	KEY("%d/%u", index_of(d), instance);
	struct row *row = find("nvmlDeviceGetMigDeviceHandleByIndex", key);
	int code = users ? act(row) : UNINITIALIZED;

	if (code == SUCCESS)
		*device = (void *)(intptr_t)(1000 + 100 * index_of(d) + instance + 1);
	return code;
}

DEVICE_TEXT(nvmlDeviceGetUUID)
DEVICE_TEXT(nvmlDeviceGetName)
DEVICE_TEXT(nvmlDeviceGetSerial)
DEVICE_TEXT(nvmlDeviceGetVbiosVersion)
DEVICE(nvmlDeviceGetPciInfo_v3)
DEVICE(nvmlDeviceGetUtilizationRates)
DEVICE(nvmlDeviceGetBAR1MemoryInfo)
DEVICE(nvmlDeviceGetMemoryInfo)
DEVICE(nvmlDeviceGetC2cModeInfoV)
DEVICE(nvmlDeviceGetModuleId)
DEVICE(nvmlDeviceGetGpuFabricInfoV)
DEVICE(nvmlDeviceGetGpuFabricInfo)
DEVICE(nvmlDeviceGetNvlinkBwMode)
DEVICE(nvmlDeviceGetPlatformInfo)
DEVICE(nvmlDeviceGetMinorNumber)
DEVICE(nvmlDeviceGetArchitecture)
DEVICE(nvmlDeviceGetPerformanceState)
DEVICE(nvmlDeviceGetPersistenceMode)
DEVICE(nvmlDeviceGetCurrPcieLinkGeneration)
DEVICE(nvmlDeviceGetCurrPcieLinkWidth)
DEVICE(nvmlDeviceGetMaxPcieLinkGeneration)
DEVICE(nvmlDeviceGetMaxPcieLinkWidth)
DEVICE(nvmlDeviceGetGpuMaxPcieLinkGeneration)
DEVICE(nvmlDeviceGetPcieReplayCounter)
DEVICE(nvmlDeviceGetNumaNodeId)
DEVICE(nvmlDeviceGetMaxMigDeviceCount)
DEVICE(nvmlDeviceGetVirtualizationMode)
DEVICE(nvmlDeviceGetAddressingMode)
DEVICE(nvmlDeviceGetCurrentClocksEventReasons)
DEVICE(nvmlDeviceGetSramEccErrorStatus)
DEVICE(nvmlDeviceGetRepairStatus)
DEVICE(nvmlDeviceGetUnrepairableMemoryFlag_v1)
DEVICE(nvmlDeviceGetRetiredPagesPendingStatus)
DEVICE(nvmlDeviceGetPowerManagementLimit)
DEVICE(nvmlDeviceGetPowerManagementDefaultLimit)
DEVICE(nvmlDeviceGetEnforcedPowerLimit)
DEVICE_TWO(nvmlDeviceGetEccMode)
DEVICE_NUMBER(nvmlDeviceGetClockInfo)
DEVICE_NUMBER(nvmlDeviceGetMaxClockInfo)
DEVICE_NUMBER(nvmlDeviceGetApplicationsClock)
DEVICE_NUMBER(nvmlDeviceGetDefaultApplicationsClock)
DEVICE_TWO(nvmlDeviceGetCudaComputeCapability)
DEVICE_TWO(nvmlDeviceGetMigMode)
DEVICE_NUMBER(nvmlDeviceGetNvLinkState)
DEVICE_NUMBER(nvmlDeviceGetNvLinkVersion)
DEVICE_NUMBER(nvmlDeviceGetNvLinkRemoteDeviceType)
DEVICE_NUMBER(nvmlDeviceGetNvLinkRemotePciInfo_v2)

int nvmlDeviceGetNvLinkErrorCounter(void *d, unsigned link, int counter, void *out)
{
	KEY("%d/%u/%d", index_of(d), link, counter);
	return put("nvmlDeviceGetNvLinkErrorCounter", key, out, NULL);
}

int nvmlDeviceGetTotalEccErrors(void *d, int kind, int counter, void *out)
{
	KEY("%d/%d/%d", index_of(d), kind, counter);
	return put("nvmlDeviceGetTotalEccErrors", key, out, NULL);
}

int nvmlDeviceGetRemappedRows(void *d, void *a, void *b, void *c, void *e)
{
	KEY("%d", index_of(d));
	struct row *row = find("nvmlDeviceGetRemappedRows", key);
	int code = users ? act(row) : UNINITIALIZED;
	void *outs[] = { a, b, c, e };

	for (int i = 0; code == SUCCESS && i < 4; i++)
		bytes(row->out[i], outs[i]);
	return code;
}

int nvmlDeviceGetCpuAffinity(void *d, unsigned words, void *out)
{
	KEY("%d/%u", index_of(d), words);
	return put("nvmlDeviceGetCpuAffinity", key, out, NULL);
}

int nvmlDeviceGetTopologyCommonAncestor(void *one, void *other, void *out)
{
	KEY("%d/%d", index_of(one), index_of(other));
	return put("nvmlDeviceGetTopologyCommonAncestor", key, out, NULL);
}

int nvmlDeviceGetP2PStatus(void *one, void *other, int what, void *out)
{
	KEY("%d/%d/%d", index_of(one), index_of(other), what);
	return put("nvmlDeviceGetP2PStatus", key, out, NULL);
}

/* nvmlFieldValue_t: fieldId, scopeId are given; the whole entry is written */
int nvmlDeviceGetFieldValues(void *d, int n, uint8_t *entries)
{
	KEY("%d", index_of(d));
	struct row *row = find("nvmlDeviceGetFieldValues", key);
	int code = users ? act(row) : UNINITIALIZED;

	for (int i = 0; code == SUCCESS && i < n; i++) {
		uint8_t *entry = entries + i * 40;
		uint32_t id, scope;

		memcpy(&id, entry, 4);
		memcpy(&scope, entry + 4, 4);
		KEY("%d/%u/%u", index_of(d), id, scope);
		row = find("nvmlDeviceGetFieldValues", key);
		if (row)
			bytes(row->out[0], entry);
		else
			memcpy(entry + 28, &(int){ 3 }, 4); /* NOT_SUPPORTED */
	}
	return code;
}
