package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/muster-sdk/muster/internal/ssa"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// resolveNewKinds settles the objects of a wave whose kinds the set defines. It waits only for kinds whose definition
// was written in this pass. Waiting for others would delay each pass.
func (e *Engine) resolveNewKinds(ctx context.Context, wave []task, changes []Change) {
	ctx, cancel := context.WithTimeout(ctx, e.options.EstablishTimeout)
	defer cancel()
	resolve := e.resolver(ctx)
	for i := range wave {
		t := &wave[i]
		if t.definition.index == nil || t.err != nil {
			continue
		}
		t.definition.changed = changes[*t.definition.index].written()
		backoff := newBackoff()
		for {
			t.err = t.resolveKind(resolve)
			if !meta.IsNoMatchError(t.err) || !changes[*t.definition.index].written() || !pause(ctx, &backoff) {
				break
			}
			resolve = e.resolver(ctx)
		}
	}
}

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: 20 * time.Millisecond, Factor: 1.5, Steps: 1000, Cap: time.Second}
}

// pause waits for the next step of the backoff, and reports whether the context has not ended.
func pause(ctx context.Context, backoff *wait.Backoff) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(backoff.Step()):
		return true
	}
}

// awaitKinds waits until the kinds that a wave has defined are served.
func (e *Engine) awaitKinds(ctx context.Context, wave []task, changes []Change) {
	ctx, cancel := context.WithTimeout(ctx, e.options.EstablishTimeout)
	defer cancel()
	for i := range wave {
		change := &changes[wave[i].index]
		if change.Object.GroupVersionKind().GroupKind() != ssa.DefinitionKind || !change.written() {
			continue
		}
		if err := e.awaitEstablished(ctx, &wave[i], change); err != nil {
			failed := wave[i].failed(err)
			failed.Live.Object = change.Live.Object
			*change = failed
		}
	}
}

func (e *Engine) awaitEstablished(ctx context.Context, t *task, change *Change) error {
	backoff := newBackoff()
	for !ssa.Established(change.Live.Object) {
		if !pause(ctx, &backoff) {
			return fmt.Errorf("CustomResourceDefinition %s is applied but was not established within %s: %s",
				t.id.Name, e.options.EstablishTimeout, unestablished(change.Live.Object))
		}
		live, err := e.read(ctx, t.id)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil {
			change.Live.Object, change.Live.ResourceVersion = live, live.GetResourceVersion()
		}
	}
	return nil
}

// unestablished returns the message of the condition that is the cause for a definition not being established.
func unestablished(live *unstructured.Unstructured) string {
	for _, blocking := range []struct{ kind, status string }{
		{"Terminating", "True"}, {"NonStructuralSchema", "True"}, {"NamesAccepted", "False"},
		{"KubernetesAPIApprovalPolicyConformant", "False"}, {"Established", "False"},
	} {
		found := ssa.Condition(live, blocking.kind)
		if found["status"] != blocking.status {
			continue
		}
		if message, _ := found["message"].(string); message != "" {
			return blocking.kind + ": " + message
		}
		return fmt.Sprintf("%s: %v", blocking.kind, found["reason"])
	}
	return "condition Established is not set"
}

// servedVersions returns the versions in which a kind is served, without the version with which the object was applied.
// None: the kind does not exist any more.
//
// A RESTMapper caches kinds, so it does not show that a kind was removed; the object that defines the kind does. If a
// kind were wrongly regarded as removed, its objects would stay forever, so any doubt is an error.
func (e *Engine) servedVersions(ctx context.Context, id v1alpha1.ResourceIdentifier) ([]string, error) {
	mapper := meta.ToRESTMapperWithContext(e.client.RESTMapper())
	mappings, err := mapper.RESTMappingsWithContext(ctx, schema.GroupKind{Group: id.Group, Kind: id.Kind})
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("discover the served versions of %s: %w", id.Kind, err)
	}
	var versions []string
	for _, mapping := range mappings {
		if version := mapping.GroupVersionKind.Version; version != id.Version {
			versions = append(versions, version)
		}
	}
	if id.Resource == "" || !strings.Contains(id.Group, ".") {
		return versions, nil // it is a kind of Kubernetes itself
	}
	crd, err := e.read(ctx, v1alpha1.ResourceIdentifier{
		Group: ssa.DefinitionKind.Group, Version: "v1", Kind: ssa.DefinitionKind.Kind, Name: id.Resource + "." + id.Group,
	})
	switch {
	case err == nil:
		_, defined := ssa.DefinedKind(crd)
		for _, version := range defined {
			if !slices.Contains(versions, version) {
				versions = append(versions, version)
			}
		}
		return versions, nil
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("check whether kind %s still exists: %w", id.Kind, err)
	}
	aggregated, err := e.read(ctx, v1alpha1.ResourceIdentifier{
		Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService", Name: id.Version + "." + id.Group,
	})
	switch {
	case apierrors.IsNotFound(err):
		return versions, nil
	case err != nil:
		return nil, fmt.Errorf("check whether kind %s still exists: %w", id.Kind, err)
	}
	if service, found, _ := unstructured.NestedMap(aggregated.Object, "spec", "service"); found && service != nil {
		return nil, fmt.Errorf("check whether kind %s still exists: the API server of APIService %s does not list "+
			"the kind", id.Kind, aggregated.GetName())
	}
	return versions, nil
}
