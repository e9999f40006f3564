/*
 * What the crate `dpdk` needs from DPDK, in the form bindgen can read on every release from 21.11 to 25.11.
 *
 * Functions declared by these headers are picked by the allow-list in build.rs; `static inline` ones get a
 * generated wrapper. This file adds what bindgen cannot express by itself:
 *   - flags that are function-like macros (RTE_BIT64),
 *   - offsets in struct rte_mbuf, whose fields live in anonymous unions since 24.03,
 *   - rte_errno and rte_eth_link, which are a macro and a changing union,
 *   - the MTU of a kernel interface, a question to the kernel that only C can put briefly,
 *   - data that lies elsewhere, whose description takes a callback,
 *   - freeing a burst without a look at the second line of each description,
 *   - a packet pool on memory of our own, which takes fields of struct rte_mempool and callbacks.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <rte_ring.h>
#include <rte_version.h>

/* Byte offsets in struct rte_mbuf. */
enum {
	SHIM_MBUF_BUF_ADDR = offsetof(struct rte_mbuf, buf_addr),
	SHIM_MBUF_DATA_OFF = offsetof(struct rte_mbuf, data_off),
	SHIM_MBUF_REFCNT = offsetof(struct rte_mbuf, refcnt),
	SHIM_MBUF_NB_SEGS = offsetof(struct rte_mbuf, nb_segs),
	SHIM_MBUF_PORT = offsetof(struct rte_mbuf, port),
	SHIM_MBUF_OL_FLAGS = offsetof(struct rte_mbuf, ol_flags),
	SHIM_MBUF_PKT_LEN = offsetof(struct rte_mbuf, pkt_len),
	SHIM_MBUF_DATA_LEN = offsetof(struct rte_mbuf, data_len),
	SHIM_MBUF_VLAN_TCI = offsetof(struct rte_mbuf, vlan_tci),
	SHIM_MBUF_HASH_RSS = offsetof(struct rte_mbuf, hash.rss),
	SHIM_MBUF_BUF_LEN = offsetof(struct rte_mbuf, buf_len),
	SHIM_MBUF_NEXT = offsetof(struct rte_mbuf, next),
	SHIM_MBUF_SHINFO = offsetof(struct rte_mbuf, shinfo),
	SHIM_MBUF_SIZE = sizeof(struct rte_mbuf),
};

static const uint16_t SHIM_MBUF_PORT_INVALID = RTE_MBUF_PORT_INVALID;

/* The data is not in the mbuf's own buffer. */
static const uint64_t SHIM_MBUF_EXTERNAL = RTE_MBUF_F_EXTERNAL;

/* What shim_lend puts at the beginning of the mbuf's own buffer, and where in it the callback is. */
enum {
	SHIM_LEND_ROOM = sizeof(struct rte_mbuf_ext_shared_info),
	SHIM_LEND_CALLBACK = offsetof(struct rte_mbuf_ext_shared_info, free_cb),
};

/* What a packet that is lent in one buffer has at the beginning of that. */
struct shim_loan {
	void *start;
	/* Grows by one when the packet is freed. */
	uint64_t *returns;
	uint16_t len;
	/* How much of the buffer's own data goes before the lent bytes; the rest is behind them. */
	uint16_t head;
};

/* Flags of a received mbuf. */
static const uint64_t SHIM_RX_VLAN_STRIPPED = RTE_MBUF_F_RX_VLAN_STRIPPED;
static const uint64_t SHIM_RX_RSS_HASH = RTE_MBUF_F_RX_RSS_HASH;
static const uint64_t SHIM_RX_IP_CKSUM_MASK = RTE_MBUF_F_RX_IP_CKSUM_MASK;
static const uint64_t SHIM_RX_IP_CKSUM_BAD = RTE_MBUF_F_RX_IP_CKSUM_BAD;
static const uint64_t SHIM_RX_IP_CKSUM_GOOD = RTE_MBUF_F_RX_IP_CKSUM_GOOD;
static const uint64_t SHIM_RX_L4_CKSUM_MASK = RTE_MBUF_F_RX_L4_CKSUM_MASK;
static const uint64_t SHIM_RX_L4_CKSUM_BAD = RTE_MBUF_F_RX_L4_CKSUM_BAD;
static const uint64_t SHIM_RX_L4_CKSUM_GOOD = RTE_MBUF_F_RX_L4_CKSUM_GOOD;

/* Offloads a port may offer. */
static const uint64_t SHIM_RX_OFFLOAD_VLAN_STRIP = RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
static const uint64_t SHIM_RX_OFFLOAD_IPV4_CKSUM = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;
static const uint64_t SHIM_RX_OFFLOAD_UDP_CKSUM = RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
static const uint64_t SHIM_RX_OFFLOAD_SCATTER = RTE_ETH_RX_OFFLOAD_SCATTER;
static const uint64_t SHIM_RX_OFFLOAD_RSS_HASH = RTE_ETH_RX_OFFLOAD_RSS_HASH;
static const uint64_t SHIM_TX_OFFLOAD_MULTI_SEGS = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;

/* The flows worth spreading over queues: RoCEv2 varies the UDP source port. */
static const uint64_t SHIM_RSS_IP_UDP = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP;

/* rte_errno is a per-thread variable behind a macro. */
static inline int
shim_errno(void)
{
	return rte_errno;
}

/* The link state without waiting for it; returns what rte_eth_link_get_nowait returns. */
static inline int
shim_link(uint16_t port, uint32_t *speed_mbps, int *up, int *full_duplex)
{
	struct rte_eth_link link = {0};
	int rc = rte_eth_link_get_nowait(port, &link);

	*speed_mbps = link.link_speed;
	*up = link.link_status == RTE_ETH_LINK_UP;
	*full_duplex = link.link_duplex == RTE_ETH_LINK_FULL_DUPLEX;
	return rc;
}

/* The MTU of a kernel interface in this thread's network namespace (/sys may show another); -1 if none. */
static inline int
shim_interface_mtu(unsigned int if_index)
{
	struct ifreq request;
	int mtu = -1;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	memset(&request, 0, sizeof(request));
	if (if_indextoname(if_index, request.ifr_name) != NULL && ioctl(fd, SIOCGIFMTU, &request) == 0)
		mtu = request.ifr_mtu;
	close(fd);
	return mtu;
}

/*
 * Makes an empty mbuf, whose own buffer has SHIM_LEND_ROOM bytes, stand for len bytes at start. When it is freed,
 * returned(start, opaque) runs on the freeing thread. No device can read the bytes by DMA.
 */
static inline void
shim_lend(struct rte_mbuf *mbuf, void *start, uint16_t len, rte_mbuf_extbuf_free_callback_t returned, void *opaque)
{
	struct rte_mbuf_ext_shared_info *shared = mbuf->buf_addr;

	shared->free_cb = returned;
	shared->fcb_opaque = opaque;
	rte_mbuf_ext_refcnt_set(shared, 1);
	rte_pktmbuf_attach_extbuf(mbuf, start, RTE_BAD_IOVA, len, shared);
	mbuf->data_len = len;
	mbuf->pkt_len = len;
}

/*
 * Frees packets. One that is a single buffer of its own with one reference, as received ones mostly are, goes back to its pool
 * without a look at the second line of its description, where the next segment is named: there is none. Nor is anything written to it,
 * so that its lines need not come back from this core when it is used again. Packets with the flag lent have a struct shim_loan;
 * their returns are counted together, after all reads of what was lent.
 */
static inline void
shim_free_bulk(struct rte_mbuf **mbufs, unsigned int count, uint64_t lent)
{
	enum { MOST = 64 };
	void *home[MOST];
	struct rte_mempool *pool = NULL;
	uint64_t *returns = NULL;
	unsigned int at, kept = 0, returned = 0;

	for (at = 0; at < count; at++) {
		struct rte_mbuf *mbuf = mbufs[at];

		if (mbuf->nb_segs != 1 || !RTE_MBUF_DIRECT(mbuf) || rte_mbuf_refcnt_read(mbuf) != 1) {
			rte_pktmbuf_free(mbuf);
			continue;
		}
		if (mbuf->ol_flags & lent) {
			const struct shim_loan *loan = mbuf->buf_addr;

			if (returned != 0 && loan->returns != returns) {
				__atomic_fetch_add(returns, returned, __ATOMIC_RELEASE);
				returned = 0;
			}
			returns = loan->returns;
			returned++;
		}
		if (kept == MOST || (kept != 0 && mbuf->pool != pool)) {
			rte_mempool_put_bulk(pool, home, kept);
			kept = 0;
		}
		pool = mbuf->pool;
		home[kept++] = mbuf;
	}
	if (kept != 0)
		rte_mempool_put_bulk(pool, home, kept);
	if (returned != 0)
		__atomic_fetch_add(returns, returned, __ATOMIC_RELEASE);
}

/* A flag of mbufs that nobody else uses, or 0 if none is left. Asked for by the same name, it is the same. */
static inline uint64_t
shim_own_flag(const char *name)
{
	struct rte_mbuf_dynflag wanted = {0};
	int bit;

	snprintf(wanted.name, sizeof(wanted.name), "%s", name);
	bit = rte_mbuf_dynflag_register(&wanted);
	return bit < 0 ? 0 : UINT64_C(1) << bit;
}

/* A copy of bytes that others may be writing. */
static inline void
shim_copy(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
}

/*
 * A packet pool as by rte_pktmbuf_pool_create, but on anonymous memory that the kernel may back by transparent huge
 * pages. Without hugepages EAL's own memory is a file mapping of 4 KiB pages, and buffers are strewn over so many of
 * them that translating their addresses costs more than moving packets (2.2 times in a virtual machine).
 * No device can read such a pool by DMA. The memory is never unmapped. NULL with rte_errno set if it fails.
 */
static inline struct rte_mempool *
shim_own_pktmbuf_pool(const char *name, unsigned int count, unsigned int cache, uint16_t data_room, int socket)
{
	const size_t huge = 2 << 20;
	struct rte_pktmbuf_pool_private private_data = {.mbuf_data_room_size = data_room};
	unsigned int element = sizeof(struct rte_mbuf) + data_room;
	struct rte_mempool *pool;
	uintptr_t start;
	size_t len;
	void *map;
	int rc;

	/* Without the flag no buffer may cross a 4 KiB page, which wastes a third of the memory. */
	pool = rte_mempool_create_empty(name, count, element, cache, sizeof(private_data), socket,
					RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	if (pool == NULL)
		return NULL;
	rc = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL);
	if (rc == 0) {
		rte_pktmbuf_pool_init(pool, &private_data);
		len = (size_t)count * (pool->header_size + pool->elt_size + pool->trailer_size);
		len = (len + huge) / huge * huge;
		/* One more, so that the part used can start where a huge page can. */
		map = mmap(NULL, len + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		rc = map == MAP_FAILED ? -ENOMEM : 0;
	}
	if (rc == 0) {
		start = ((uintptr_t)map + huge - 1) / huge * huge;
		madvise((void *)start, len, MADV_HUGEPAGE); /* Advice: a kernel without them changes nothing. */
		rc = rte_mempool_populate_iova(pool, (char *)start, RTE_BAD_IOVA, len, NULL, NULL);
		if (rc >= 0 && (unsigned int)rc < count)
			rc = -ENOMEM;
	}
	if (rc < 0) {
		rte_mempool_free(pool);
		rte_errno = -rc;
		return NULL;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}
