// NCCL's own reader and graph over one topology file: what NCCL makes of every pair. Links xml.cc and topo.cc of an NCCL
// checkout (2.30) and includes its paths.cc; nothing of NCCL is here. What the three want of the rest of NCCL is stubbed:
// no GPU, no driver, no /sys.
//
// Build, with N the checkout, its nccl.h.in made nccl.h, and C the include folders of the PyPI wheels
// nvidia-cuda-runtime-cu12, nvidia-cuda-nvcc-cu12 and nvidia-cuda-cccl-cu12:
//   g++ -std=c++17 -w -DNCCL_OS_LINUX=1 -I$C.. -I$N/src/include -I$N/src/include/plugin -I$N/src/graph -I$N/src -c
//       nccl_oracle.cc $N/src/graph/xml.cc $N/src/graph/topo.cc
// and link the three with an empty function for every symbol that is still missing (none of them is called).
// Then: FABRICSCOPE_NCCL_ORACLE=./oracle pytest tests/agent/outputs/export/test_nccl_topo.py
#include "graph/paths.cc"
#include <cstdarg>

int ncclDebugLevel = 3;
uint64_t ncclDebugMask = ~0ull;
thread_local int ncclDebugNoWarn = 0;

void ncclDebugLogInternal(ncclDebugLogLevel level, unsigned long, const char*, const char*, int, const char* form, ...) {
  if (level != NCCL_LOG_WARN) return;
  va_list said;
  va_start(said, form);
  vfprintf(stderr, form, said);
  va_end(said);
  fputc('\n', stderr);
}
int64_t ncclLoadParam(char const*, int64_t preset, int64_t, int64_t* cache, int8_t*) { return *cache = preset; }
const char* ncclGetEnv(const char*) { return nullptr; }
uint64_t getHostHash() { return 1; }
void ncclOsCpuZero(ncclAffinity& set) { CPU_ZERO(&set); }
void ncclOsCpuSet(ncclAffinity& set, int cpu) { CPU_SET(cpu, &set); }

ncclResult_t busIdToInt64(const char* text, int64_t* id) {
  *id = 0;
  for (; *text; text++)
    if (isxdigit(*text)) *id = *id * 16 + (isdigit(*text) ? *text - '0' : tolower(*text) - 'a' + 10);
  return ncclSuccess;
}
ncclResult_t int64ToBusId(int64_t id, char* text) {
  sprintf(text, "%04lx:%02lx:%02lx.%lx", id >> 20, id >> 12 & 0xff, id >> 4 & 0xff, id & 0xf);
  return ncclSuccess;
}

static void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  fprintf(stderr, "refused: %s: %d\n", what, result);
  exit(1);
}

// What a process of a job adds: its rank, and what NCCL writes where the host has no answer.
static void fill(struct ncclXml* xml) {
  int rank = 0;
  for (int at = 0; at < xml->maxIndex; at++) {
    struct ncclXmlNode* node = xml->nodes + at;
    if (!strcmp(node->name, "cpu")) {
      xmlSetAttrLong(node, "host_hash", getHostHash());
      xmlSetAttrIfUnset(node, "arch", "x86_64");
      xmlSetAttrIfUnset(node, "vendor", "AuthenticAMD");
    } else if (!strcmp(node->name, "pci")) {
      xmlSetAttrIfUnset(node, "link_speed", "");
      xmlSetAttrIfUnset(node, "link_width", "");
      xmlSetAttrIfUnset(node, "class", "0x03");
    } else if (!strcmp(node->name, "gpu")) {
      xmlSetAttrInt(node, "rank", rank++);
      xmlSetAttrIfUnset(node, "gdr", "1");
      xmlSetAttrIfUnset(node, "sm", "90");
      xmlSetAttrIfUnset(node, "dev", "0");
    } else if (!strcmp(node->name, "net")) {
      xmlSetAttrIfUnset(node, "latency", "0");
    }
  }
}

int main(int, char** argv) {
  struct ncclXml* xml;
  struct ncclTopoSystem* system = nullptr;
  check(xmlAlloc(&xml, NCCL_TOPO_XML_MAX_NODES), "memory");
  check(ncclTopoGetXmlFromFile(argv[1], xml, 1), "the file");
  fill(xml);
  check(ncclTopoGetSystemFromXml(xml, &system, getHostHash()), "the system");
  for (int type : {CPU, DEV, GPU, NET, NVS})
    for (int at = 0; at < system->nodes[type].count; at++)
      check(ncclTopoSetPaths(system->nodes[type].nodes + at, system), "the paths");
  for (int a = 0; a < system->nodes[GPU].count; a++) {
    struct ncclTopoNode* gpu = system->nodes[GPU].nodes + a;
    char from[32], to[32];
    int64ToBusId(gpu->id & 0xffffffffff, from);
    for (int b = 0; b < system->nodes[GPU].count; b++) {
      int64ToBusId(system->nodes[GPU].nodes[b].id & 0xffffffffff, to);
      if (a != b) printf("%s %s %s\n", from, to, topoPathTypeStr[gpu->paths[GPU][b].type]);
    }
    for (int n = 0; n < system->nodes[NET].count; n++)
      printf("%s net-%d %s\n", from, system->nodes[NET].nodes[n].net.dev, topoPathTypeStr[gpu->paths[NET][n].type]);
  }
  return 0;
}
