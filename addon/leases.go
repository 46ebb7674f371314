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

// leases remembers when the Leases of add-ons were seen to be renewed, by this hub's clock: those of members need not be right.
type leases struct {
	clock   clock.PassiveClock
	changed func(types.NamespacedName)

	mu   sync.Mutex
	seen map[types.NamespacedName]sight
}

// sight is when a Lease was seen to be renewed last.
type sight struct {
	version string // what the agent wrote
	at      time.Time
}

// informer watches the Leases that have the label of an add-on. Those that there were at the start are known when known says so.
func (l *leases) informer(c client.WithWatch) (informer toolscache.SharedIndexInformer, known toolscache.InformerSynced, err error) {
	informer = toolscache.NewSharedIndexInformer(listWatch(c, func() client.ObjectList { return &coordinationv1.LeaseList{} }),
		&coordinationv1.Lease{}, 0, toolscache.Indexers{})
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { l.saw(object.(*coordinationv1.Lease)) },
		UpdateFunc: func(_, object any) { l.saw(object.(*coordinationv1.Lease)) },
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

// saw takes in a Lease. That it was renewed once more is no news, unless it was not for long.
func (l *leases) saw(lease *coordinationv1.Lease) {
	key := client.ObjectKeyFromObject(lease)
	if lease.Labels[v1alpha1.AddonLabel] != lease.Name || lease.Spec.RenewTime == nil {
		return
	}
	version := lease.Spec.RenewTime.UTC().String()
	l.mu.Lock()
	before, known := l.seen[key]
	if !known || before.version != version {
		l.seen[key] = sight{version, l.clock.Now()}
	}
	l.mu.Unlock()
	if !known || before.version != version && l.clock.Since(before.at) > leaseNews {
		l.changed(key)
	}
}

// leaseNews is after how long a renewal is news: shorter than the shortest duration of a Lease.
const leaseNews = 4 * time.Second

// renewed is when the Lease of an add-on was seen to be renewed last; zero: never.
func (l *leases) renewed(key types.NamespacedName) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[key].at
}
