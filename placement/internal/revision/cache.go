package revision

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

// cacheBytes is how much a Store remembers. A rollout needs two revisions of each WorkSet again and again.
const cacheBytes = 64 << 20

type cacheKey struct {
	workSet types.UID
	name    string
}

type cached struct {
	content *Content
	size    int
}

// cache has the contents that were used last.
type cache struct {
	mu    sync.Mutex
	lru   *lru.Cache
	limit int
	size  int
}

func newCache(limit int) *cache {
	c := &cache{limit: limit}
	// 0: the limit is ours
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
