package clusterprofile

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldOwner is the field manager of the exported objects. It has the former name of this package: another name would
// leave the fields of earlier releases behind.
const fieldOwner = "muster-interop"

// exporter exports the kinds whose definitions are installed.
type exporter struct {
	Options

	cache   cache.Cache
	live    client.Reader // not a cache
	dynamic dynamic.Interface
	// namespaces reads the metadata of namespaces from the API server.
	namespaces metadata.Getter
	log        logr.Logger
	recorder   events.EventRecorder

	changed   chan struct{} // contains a value while Start must check the definitions again
	fail      context.CancelCauseFunc
	profiles  atomic.Pointer[export]
	decisions atomic.Pointer[export]

	// sets contains the namespaces of ClusterSets.
	sets atomic.Pointer[setNamespaces]
}

// NeedLeaderElection returns true, because two exporters would double the writes.
func (e *exporter) NeedLeaderElection() bool { return true }

// Start exports until the context ends, and then waits for all goroutines that it has started.
func (e *exporter) Start(ctx context.Context) error {
	ctx, e.fail = context.WithCancelCause(klog.NewContext(ctx, e.log))
	var watches sync.WaitGroup
	defer func() {
		e.fail(nil)
		for _, x := range []*export{e.profiles.Load(), e.decisions.Load()} {
			if x != nil {
				x.stop()
			}
		}
		watches.Wait()
	}()
	profiles, decisions := e.profileKind(), e.decisionKind()
	profilesDefined, decisionsDefined := e.watchDefinition(profiles), e.watchDefinition(decisions)
	watches.Go(func() { profilesDefined.RunWithContext(ctx) })
	watches.Go(func() { decisionsDefined.RunWithContext(ctx) })
	for {
		// Decisions refer to profiles, so their export requires that the owners of the profiles are observed.
		var defined types.UID
		current := servedAs(profilesDefined.GetStore())
		if p := e.profiles.Load(); p != nil && p.definition == current && p.ready.Load() {
			defined = servedAs(decisionsDefined.GetStore())
		}
		e.adjust(ctx, &e.decisions, decisions, defined)
		e.adjust(ctx, &e.profiles, profiles, current)
		select {
		case <-e.changed:
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		}
	}
}

// adjust starts or stops the export of a kind, so that it runs while the kind has the given definition. An empty UID
// means that the definition does not exist.
func (e *exporter) adjust(ctx context.Context, current *atomic.Pointer[export], k kind, definition types.UID) {
	if x := current.Load(); x != nil {
		if x.definition == definition {
			return
		}
		current.Store(nil)
		x.stop()
		e.log.Info("Export stopped", "resource", k.resource.GroupResource().String())
	}
	if definition != "" && ctx.Err() == nil {
		e.log.Info("Export started", "resource", k.resource.GroupResource().String())
		current.Store(e.begin(ctx, k, definition))
	}
}

// recheckDefinitions makes Start check the definitions again.
func (e *exporter) recheckDefinitions() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// failed returns a handler that logs the errors of a watch. The reflector retries by itself, after up to about 30
// seconds.
func (e *exporter) failed(what string) toolscache.WatchErrorHandlerWithContext {
	return func(_ context.Context, _ *toolscache.Reflector, err error) {
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, context.Canceled), apierrors.IsNotFound(err),
			apierrors.IsResourceExpired(err), apierrors.IsGone(err):
			e.log.V(1).Info("Watch ended, retrying", "resource", what, "reason", err.Error())
		default:
			e.log.Error(err, "Watch failed, retrying", "resource", what)
		}
	}
}
