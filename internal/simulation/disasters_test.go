package simulation

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest/apiserver"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// snapshot is a backup of the hub.
type snapshot struct {
	at    time.Duration
	state apiserver.Snapshot
}

// strike has something go wrong that is larger than a request. Most of it lasts until calm or longer.
func (w *world) strike() {
	switch r := w.random; r.IntN(12) {
	case 0:
		m := w.member()
		w.h.note("agent of %s is killed", m.name)
		m.process.kill()
		w.wait(time.Duration(r.IntN(60)) * time.Second)
		w.startAgent(m)
	case 1:
		w.h.note("hub is killed")
		w.process.kill()
		w.wait(time.Duration(r.IntN(60)) * time.Second)
		w.startHub()
	case 2, 3:
		m := w.member()
		w.h.note("%s is partitioned from the hub", m.name)
		w.net.set(w.net.partitioned, "agent-"+m.name+" > hub", true)
	case 4:
		w.h.note("partitions end")
		w.heal()
	case 5:
		m := w.member()
		link := []string{"hub > hub", "agent-" + m.name + " > hub", "agent-" + m.name + " > " + m.name}[r.IntN(3)]
		w.h.note("lists are forbidden: %s", link)
		w.net.set(w.net.forbidden, link, true)
	case 6:
		w.h.note("the hub is backed up")
		w.backups = append(w.backups, snapshot{w.h.now(), w.hub.Save()})
	case 7, 8:
		if len(w.backups) == 0 {
			return
		}
		backup := w.backups[r.IntN(len(w.backups))]
		w.h.note("the hub is restored to its state of %s", backup.at)
		w.intent.disaster()
		w.churn()
		w.hub.Restore(backup.state)
		w.intent.disaster()
	case 9:
		w.deleteNamespace(w.member())
	case 10:
		w.loseWork()
	case 11:
		w.recreateMember(w.member())
	}
}

// churn increases the resourceVersion of the hub. The hub detects a restore by a decreased resourceVersion, every ten
// seconds: it does not detect one that is so recent that its own writes exceed the former resourceVersion before that.
func (w *world) churn() {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "churn"}}
	for n := range 500 {
		w.put(config, func() { config.Data = map[string]string{"n": fmt.Sprint(n)} })
	}
}

func (w *world) wait(d time.Duration) { <-time.After(d) } // virtual

// heal ends all partitions and refusals.
func (w *world) heal() {
	w.net.mu.Lock()
	defer w.net.mu.Unlock()
	clear(w.net.partitioned)
	clear(w.net.forbidden)
}

// deleteNamespace deletes the namespace of a member on the hub by hand.
func (w *world) deleteNamespace(m *member) {
	w.h.note("the namespace of %s is deleted by hand", m.name)
	w.intent.disaster()
	err := w.admin.Delete(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "member-" + m.name}})
	require.NoError(w.t, client.IgnoreNotFound(err))
}

// loseWork removes a Work past its finalizers.
func (w *world) loseWork() {
	var list workv1alpha1.WorkList
	require.NoError(w.t, w.admin.List(w.ctx, &list))
	if len(list.Items) == 0 {
		return
	}
	work := &list.Items[w.random.IntN(len(list.Items))]
	w.h.note("Work %s/%s is removed past its finalizers", work.Namespace, work.Name)
	w.intent.disaster()
	w.vanish(work)
}

// vanish removes an object and its finalizers at once, as far as its controllers see: they are stopped meanwhile.
func (w *world) vanish(o client.Object) {
	for {
		if err := w.admin.Get(w.ctx, client.ObjectKeyFromObject(o), o); apierrors.IsNotFound(err) {
			return
		}
		o.SetFinalizers(nil)
		if err := w.admin.Update(w.ctx, o); err != nil {
			continue
		}
		uid, version := o.GetUID(), o.GetResourceVersion()
		if w.admin.Delete(w.ctx, o, client.Preconditions{UID: &uid, ResourceVersion: &version}) == nil {
			return
		}
	}
}

// recreateMember replaces a MemberCluster by one with another UID and without its status, as a backup tool does.
func (w *world) recreateMember(m *member) {
	cluster := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: m.name}}
	if w.admin.Get(w.ctx, client.ObjectKeyFromObject(cluster), cluster) != nil || cluster.DeletionTimestamp != nil {
		return
	}
	w.h.note("MemberCluster %s is created again with another UID", m.name)
	w.intent.disaster()
	w.process.kill()
	again := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: m.name, Labels: cluster.Labels}, Spec: *cluster.Spec.DeepCopy()}
	w.vanish(cluster)
	require.NoError(w.t, w.admin.Create(w.ctx, again))
	w.startHub()
}

// calm ends all faults. Users then repeat what they want.
func (w *world) calm() {
	w.h.note("faults end")
	w.net.chaotic.Store(false)
	w.heal()
	if w.intent.unsettled {
		w.wait(time.Minute)
		w.tokens++
		joinYAML := w.token(fmt.Sprint("again-", w.tokens))
		for _, m := range w.members {
			if w.joined(m.name) != nil {
				w.install(m, joinYAML)
			}
		}
	}
	w.repair()
}
