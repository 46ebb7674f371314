package disaster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	workcrds "github.com/muster-sdk/muster/work/crds"
)

var (
	hubOptions = localplane.Options{
		Name: "hub", Prepare: mustertest.Prepare(newScheme(), assembly.InstallHubDefinitions),
	}
	memberOptions = localplane.Options{
		Name: "member", Nodes: 1, Prepare: mustertest.Prepare(newScheme(), workcrds.InstallOnMember),
	}
)

// hubPlanes and memberPlanes are the planes of hubs and of members. The start of a plane takes four seconds of CPU
// time, and the definitions of a hub take three more. A test that passes therefore returns its planes, and later tests
// use them.
var hubPlanes, memberPlanes = newPlanePool(hubOptions), newPlanePool(memberOptions)

// poolSize is more than the number of planes that all tests use, even if they run many times. Most of them never start.
const poolSize = 1000

// planePool is a set of planes with the same options. A plane starts when no other plane is free.
type planePool struct {
	shared []*localplane.Shared

	mu       sync.Mutex
	free     []*pooledPlane
	stopped  []*localplane.Plane
	started  int
	expected int // the number of planes that tests will borrow
}

// pooledPlane is a plane of a pool.
type pooledPlane struct {
	*localplane.Plane
	initial map[string]bool // the objects at the start, by objectName
	used    bool
}

func newPlanePool(options localplane.Options) *planePool {
	p := &planePool{}
	for i := range poolSize {
		each := options
		each.Name = fmt.Sprint(options.Name, "-", i)
		p.shared = append(p.shared, &localplane.Shared{Options: each})
	}
	return p
}

// borrow returns a plane without the objects of earlier tests. The test has the plane for itself until it ends. A plane
// of a test that failed is not used again, because its state is unknown.
func (p *planePool) borrow(t *testing.T) *localplane.Plane {
	t.Helper()
	plane := p.next(t)
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !t.Failed() && !slices.Contains(p.stopped, plane.Plane) {
			p.free = append(p.free, plane)
		}
	})
	if plane.used {
		require.NoError(t, plane.clear(t.Context()), "remove the objects of an earlier test")
	}
	plane.used = true
	return plane.Plane
}

// stop stops a borrowed plane. It is not used again.
func (p *planePool) stop(plane *localplane.Plane) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = append(p.stopped, plane)
	return plane.Stop()
}

// expect announces that a test will borrow this number of planes.
func (p *planePool) expect(count int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected += count
}

// trim stops the free planes that no test will borrow.
func (p *planePool) trim() error {
	p.mu.Lock()
	surplus := p.free[min(max(p.expected, 0), len(p.free)):]
	p.free = p.free[:len(p.free)-len(surplus)]
	p.mu.Unlock()
	var errs []error
	for _, plane := range surplus {
		errs = append(errs, plane.Stop())
	}
	return errors.Join(errs...)
}

// next returns the plane that became free last, or starts another one.
func (p *planePool) next(t *testing.T) *pooledPlane {
	t.Helper()
	p.mu.Lock()
	p.expected--
	if n := len(p.free); n > 0 {
		defer p.mu.Unlock()
		plane := p.free[n-1]
		p.free = p.free[:n-1]
		return plane
	}
	require.Less(t, p.started, len(p.shared), "planes in use")
	shared := p.shared[p.started]
	p.started++
	p.mu.Unlock()
	plane := &pooledPlane{Plane: shared.ForTest(t), initial: map[string]bool{}}
	objects, err := plane.objects(t.Context())
	require.NoError(t, err)
	for name := range objects {
		plane.initial[name] = true
	}
	return plane
}

// clearTimeout limits how long clear waits for the controllers of Kubernetes.
const clearTimeout = 2 * time.Minute

// clear deletes all objects that did not exist at the start of the plane, also those with finalizers. It fails if an
// object of the start is missing, such as a definition that a test removed. A rejected deletion is attempted again: for
// half a minute after its start, an API server can deny changes of MemberClusters, because it has not found the
// definition to which a policy refers.
func (p *pooledPlane) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clearTimeout)
	defer cancel()
	client, err := metadata.NewForConfig(p.Config())
	if err != nil {
		return err
	}
	for {
		objects, err := p.objects(ctx)
		if err != nil {
			return err
		}
		for name := range p.initial {
			if _, exists := objects[name]; !exists {
				return fmt.Errorf("%s does not exist anymore", name)
			}
		}
		var left []string
		var failed error
		for name, o := range objects {
			if p.initial[name] {
				continue
			}
			left = append(left, name)
			namespace, inNamespace := objects[objectName(namespaceKind, "", o.Namespace)]
			deleted := o.DeletionTimestamp != nil || inNamespace && namespace.DeletionTimestamp != nil
			if err := o.remove(ctx, client, deleted); err != nil {
				failed = fmt.Errorf("delete %s: %w", name, err)
			}
		}
		if len(left) == 0 {
			return nil
		}
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%w; these objects exist: %s", context.Cause(ctx), strings.Join(left, ", ")), failed)
		}
	}
}

var namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}

// planeObject is an object of a plane.
type planeObject struct {
	resource schema.GroupVersionResource
	*metav1.PartialObjectMetadata
}

// remove deletes an object without its finalizers, unless its deletion was requested already.
func (o planeObject) remove(ctx context.Context, client metadata.Interface, deleted bool) error {
	at := client.Resource(o.resource).Namespace(o.Namespace)
	var err error
	if !deleted {
		err = at.Delete(ctx, o.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	}
	if len(o.Finalizers) > 0 && (err == nil || apierrors.IsNotFound(err)) {
		_, err = at.Patch(ctx, o.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
			metav1.PatchOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// objects returns all objects of a plane that tests may create or delete, by objectName. It omits namespaces
// of Kubernetes, nodes, Events, and the objects that Kubernetes creates in each namespace.
func (p *pooledPlane) objects(ctx context.Context) (map[string]planeObject, error) {
	config := p.Config()
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := discoverer.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	objects := map[string]planeObject{}
	var errs []error
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		errs = append(errs, err)
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") || ofKubernetes(version.Group, r.Kind) {
				continue
			}
			resource := version.WithResource(r.Name)
			found, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
			if err != nil {
				errs = append(errs, fmt.Errorf("list %s: %w", resource, err))
				continue
			}
			for i := range found.Items {
				o := &found.Items[i]
				kubernetes := strings.HasPrefix(o.Namespace+o.Name, "kube-") || o.Name == "kube-root-ca.crt" ||
					r.Kind == "ServiceAccount" && o.Name == "default"
				if !kubernetes {
					objects[objectName(version.WithKind(r.Kind), o.Namespace, o.Name)] = planeObject{resource, o}
				}
			}
		}
	}
	return objects, errors.Join(errs...)
}

// ofKubernetes reports whether Kubernetes creates and deletes objects of this kind at any time.
func ofKubernetes(group, kind string) bool {
	return slices.Contains([]string{
		"discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io", "networking.k8s.io", "storage.k8s.io",
		"apiregistration.k8s.io", "metrics.k8s.io",
	}, group) || slices.Contains([]string{"Event", "Node", "Endpoints"}, kind)
}

func objectName(kind schema.GroupVersionKind, namespace, name string) string {
	return fmt.Sprintf("%s.%s %s/%s", kind.Kind, kind.Group, namespace, name)
}
