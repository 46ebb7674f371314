package revision

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

// cacheBytes is the maximum size of the contents that a Store caches. A rollout needs two revisions of each WorkSet
// repeatedly.
const cacheBytes = 64 << 20

type cacheKey struct {
	workSet types.UID
	name    string
}

type cached struct {
	content *Content
	size    int
}

// cache contains the most recently used contents.
type cache struct {
	mu    sync.Mutex
	lru   *lru.Cache
	limit int
	size  int
}

func newCache(limit int) *cache {
	c := &cache{limit: limit}
	// 0: lru has no limit; add limits the size
	c.lru = lru.NewWithEvictionFunc(0, func(_ lru.Key, value any) { c.size -= value.(cached).size })
	return c
}

func (c *cache) get(key cacheKey) *Content {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, found := c.lru.Get(key)
	if !found {
		return nil
	}
	return value.(cached).content
}

func (c *cache) add(key cacheKey, content *Content, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Remove(key)
	c.lru.Add(key, cached{content, size})
	for c.size += size; c.size > c.limit; {
		c.lru.RemoveOldest()
	}
}

func (c *cache) remove(key cacheKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Remove(key)
}
