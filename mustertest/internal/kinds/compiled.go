package kinds

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// maxCompiled is the number of CustomResourceDefinitions whose compiled form is cached in this process.
const maxCompiled = 200

// compiled caches values by the spec of a CustomResourceDefinition and a version. Most servers of a process have the
// same definitions, and the compilation of their CEL rules takes more CPU time than the rest of a short test.
type compiled[V any] struct {
	mu     sync.Mutex
	values map[[sha256.Size]byte]V
}

// get returns the cached value of the definition and version, or compiles and caches it. Errors are not cached. The
// values must be immutable, because several servers use them at the same time.
func (c *compiled[V]) get(spec *apiextensionsv1.CustomResourceDefinitionSpec, version string,
	compile func() (V, error)) (V, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return compile()
	}
	key := sha256.Sum256(append(text, version...))
	c.mu.Lock()
	value, ok := c.values[key]
	c.mu.Unlock()
	if ok {
		return value, nil
	}
	// Compile without the lock: in a testing/synctest bubble, waiting for a mutex does not block durably.
	if value, err = compile(); err != nil {
		return value, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values == nil || len(c.values) >= maxCompiled {
		c.values = map[[sha256.Size]byte]V{}
	}
	c.values[key] = value
	return value, nil
}
