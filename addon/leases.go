package addon

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// leases records when renewals of the Leases of add-ons were observed, by the hub's clock. The clocks of members can
// be wrong.
type leases struct {
	clock   clock.PassiveClock
	changed func(types.NamespacedName)

	mu   sync.Mutex
	seen map[types.NamespacedName]renewal
}

// renewal is when the last renewal of a Lease was observed.
type renewal struct {
	version string // the resourceVersion that the agent wrote
	at      time.Time
}

// informer watches the Leases with the label of an add-on. known reports that all existing Leases were observed.
func (l *leases) informer(
	c client.WithWatch) (informer toolscache.SharedIndexInformer, known toolscache.InformerSynced, err error) {
	informer = toolscache.NewSharedIndexInformer(listWatch(c, func() client.ObjectList {
		return &coordinationv1.LeaseList{}
	}),
		&coordinationv1.Lease{}, 0, toolscache.Indexers{})
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { l.observe(object.(*coordinationv1.Lease)) },
		UpdateFunc: func(_, object any) { l.observe(object.(*coordinationv1.Lease)) },
		DeleteFunc: func(object any) {
			if unknown, is := object.(toolscache.DeletedFinalStateUnknown); is {
				object = unknown.Obj
			}
			if lease, is := object.(*coordinationv1.Lease); is {
				l.mu.Lock()
				delete(l.seen, client.ObjectKeyFromObject(lease))
				l.mu.Unlock()
			}
		},
	})
	if err != nil {
		return nil, nil, err
	}
	return informer, registration.HasSynced, nil
}

// observe records a Lease. Another renewal triggers a reconcile only after a pause.
func (l *leases) observe(lease *coordinationv1.Lease) {
	key := client.ObjectKeyFromObject(lease)
	if lease.Labels[v1alpha1.AddonLabel] != lease.Name || lease.Spec.RenewTime == nil {
		return
	}
	version := lease.Spec.RenewTime.UTC().String()
	l.mu.Lock()
	before, known := l.seen[key]
	if !known || before.version != version {
		l.seen[key] = renewal{version, l.clock.Now()}
	}
	l.mu.Unlock()
	if !known || before.version != version && l.clock.Since(before.at) > leaseNews {
		l.changed(key)
	}
}

// leaseNews is the pause after which a renewal triggers a reconcile: less than the minimum duration of a Lease.
const leaseNews = 4 * time.Second

// renewed returns when the last renewal of an add-on's Lease was observed. Zero: never.
func (l *leases) renewed(key types.NamespacedName) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[key].at
}
