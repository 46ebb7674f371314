package agent

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// engines has one engine for each identity with which Works are applied.
type engines struct {
	agent   client.Client
	config  *rest.Config
	options apply.Options

	mu  sync.Mutex
	own *engine
	of  map[v1alpha1.Executor]*engine
}

// engine applies and reads objects as one user: the agent, or the ServiceAccount of an executor.
type engine struct {
	*apply.Engine
	client client.Client
}

func newEngines(agent client.Client, config *rest.Config, options apply.Options, metadata apply.Metadata) *engines {
	options.Metadata = metadata
	return &engines{
		agent: agent, config: config, options: options,
		own: &engine{apply.New(agent, options), agent}, of: map[v1alpha1.Executor]*engine{},
	}
}

// get returns the engine that uses the identity of an executor, or of the agent (nil). The API server adds the groups
// of an impersonated ServiceAccount itself.
func (e *engines) get(executor *v1alpha1.Executor) (*engine, error) {
	if executor == nil {
		return e.own, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if made := e.of[*executor]; made != nil {
		return made, nil
	}
	config := rest.CopyConfig(e.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: fmt.Sprintf("system:serviceaccount:%s:%s", executor.Namespace,
		executor.Name)}
	c, err := client.New(config, client.Options{Scheme: e.agent.Scheme(), Mapper: e.agent.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("create the client of ServiceAccount %s/%s: %w", executor.Namespace, executor.Name, err)
	}
	e.of[*executor] = &engine{apply.New(c, e.options), c}
	return e.of[*executor], nil
}

// forget drops the cached state of an owner from all engines.
func (e *engines) forget(owner types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.own.Forget(owner)
	for _, engine := range e.of {
		engine.Forget(owner)
	}
}
