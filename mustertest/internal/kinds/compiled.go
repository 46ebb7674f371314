package kinds

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// maxCompiled is the number of CustomResourceDefinitions whose compiled form is kept in this process.
const maxCompiled = 200

// compiled keeps values by the spec of a CustomResourceDefinition and a version of it. Most servers of a process have
// the same definitions, and to compile their CEL rules takes more CPU time than everything else that a short test does.
type compiled[V any] struct {
	mu     sync.Mutex
	values map[[sha256.Size]byte]V
}

// get returns what was made of the same definition before, or makes it. A failure is not kept. The values must be
// immutable: several servers use them at the same time.
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
	// Not under the lock: in a testing/synctest bubble, waiting for a mutex is not durable.
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
