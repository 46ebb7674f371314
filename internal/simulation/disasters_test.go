package simulation

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/membership"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest/apiserver"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	workcrds "github.com/muster-sdk/muster/work/crds"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// snapshot is a backup of the hub.
type snapshot struct {
	at    time.Duration
	state apiserver.Snapshot
}

// randomDisaster causes a random fault that affects more than one request. Most faults last until endFaults or longer.
func (w *world) randomDisaster() {
	switch r := w.random; r.IntN(22) {
	case 0:
		m := w.member()
		w.h.note("agent of %s is killed", m.name)
		m.process.kill()
		w.wait(time.Duration(r.IntN(60)) * time.Second)
		w.startAgent(m)
	case 1:
		w.h.note("hub is killed")
		w.killHub()
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
	case 12:
		w.pauseHub()
	case 13:
		w.loseTombstones()
	case 14:
		w.removeDefinition()
	case 15:
		w.restoreMember(w.member())
	case 16:
		w.installOtherHub(w.member())
	case 17:
		jump := time.Duration(r.Int64N(int64(2*time.Hour))) - time.Hour
		w.skew = max(w.skew, jump)
		if r.IntN(2) == 0 {
			w.setClock(w.member(), jump)
		} else {
			w.setClock(nil, jump)
		}
	case 18:
		m := w.member()
		link := []string{"agent-" + m.name + " > " + m.name, "hub > hub", "hub-0 > hub"}[r.IntN(3)]
		w.h.note("partition: %s", link)
		w.net.set(w.net.partitioned, link, true)
	case 19:
		w.recreate()
	case 20:
		w.loseFinalizers()
	case 21:
		w.loseDecision()
	}
}

// setClock restarts the agent of a member, or the hub, with a clock that is wrong. The clock of a running process does
// not change, because the process measures durations with its monotonic clock.
func (w *world) setClock(m *member, jump time.Duration) {
	if m != nil {
		w.h.note("the clock of %s is wrong by %s", m.name, jump)
		m.process.kill()
		m.clock.offset.Store(int64(jump))
		w.startAgent(m)
		return
	}
	w.h.note("the clock of the hub is wrong by %s", jump)
	w.killHub()
	w.clock.offset.Store(int64(jump))
	w.startHub()
}

// recreate replaces a Placement, a WorkSet or the Addon by one with another UID and without its status.
func (w *world) recreate() {
	if w.random.IntN(2) == 0 {
		name := placementNames[w.random.IntN(len(placementNames))]
		if _, ok := w.intent.placements[name]; !ok {
			return
		}
		w.h.note("Placement %s is created again with another UID", name)
		w.intent.disaster()
		w.vanish(w.placementObject(name))
		w.putPlacement(name)
		return
	}
	name := workSetNames[w.random.IntN(len(workSetNames))]
	if _, ok := w.intent.worksets[name]; !ok {
		return
	}
	w.h.note("WorkSet or Addon %s is created again with another UID", name)
	w.intent.disaster()
	w.vanish(w.workSetOrAddon(name))
	w.putWorkSet(name)
}

// loseFinalizers removes the finalizers of an object by hand. The object stays.
func (w *world) loseFinalizers() {
	var works workv1alpha1.WorkList
	if w.admin.List(w.ctx, &works) != nil {
		return
	}
	var all []client.Object
	for i := range works.Items {
		all = append(all, &works.Items[i])
	}
	for _, m := range w.members {
		all = append(all, &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: m.name}})
	}
	for _, name := range workSetNames {
		all = append(all, w.workSetOrAddon(name))
	}
	o := all[w.random.IntN(len(all))]
	w.h.note("%T %s loses its finalizers", o, o.GetName())
	w.intent.disaster()
	err := w.admin.Patch(w.ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	require.NoError(w.t, client.IgnoreNotFound(err))
}

// loseDecision deletes a PlacementDecision by hand, or the namespace of those of ClusterPlacements.
func (w *world) loseDecision() {
	if w.clusterScope && w.random.IntN(2) == 0 {
		w.h.note("namespace %s is deleted by hand", placementv1alpha1.ClusterScopeNamespace)
		err := w.admin.Delete(w.ctx, &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: placementv1alpha1.ClusterScopeNamespace},
		})
		require.NoError(w.t, client.IgnoreNotFound(err))
		return
	}
	var list placementv1alpha1.PlacementDecisionList
	if w.admin.List(w.ctx, &list) != nil || len(list.Items) == 0 {
		return
	}
	d := &list.Items[w.random.IntN(len(list.Items))]
	w.h.note("PlacementDecision %s is deleted by hand", d.Name)
	require.NoError(w.t, client.IgnoreNotFound(w.admin.Delete(w.ctx, d)))
}

// pauseHub suspends the hub at its requests while another replica leads. The requests that it had begun arrive when it
// continues, and the loss of its Lease ends the hub soon after. With two replicas, the Lease decides which one leads.
func (w *world) pauseHub() {
	if w.replicated {
		p := w.replicas[w.random.IntN(2)]
		w.h.note("a replica of the hub is paused")
		p.pause()
		w.wait(time.Duration(5+w.random.IntN(120)) * time.Second)
		w.h.note("the paused replica continues")
		p.resume()
		return
	}
	w.h.note("the hub is paused, and another replica starts")
	before := w.replicas[0]
	before.pause()
	w.startHub()
	w.wait(time.Duration(5+w.random.IntN(90)) * time.Second)
	w.h.note("the paused hub continues")
	before.resume()
	w.wait(time.Duration(w.random.IntN(3000)) * time.Millisecond)
	before.kill()
}

// loseTombstones deletes the hub's records of members that left.
func (w *world) loseTombstones() {
	w.h.note("the records of members that left are lost")
	w.intent.disaster()
	require.NoError(w.t, w.admin.DeleteAllOf(w.ctx, &corev1.ConfigMap{},
		client.InNamespace(membership.RegistrationNamespace), client.HasLabels{membership.TombstoneLabel}))
}

// removeDefinition removes a definition of the hub or of a member, with all its objects, and installs it again.
func (w *world) removeDefinition() {
	m := w.member()
	admin, where, install := w.admin, "the hub", assembly.InstallHubDefinitions
	name := []string{
		"appliedworks.work.muster.dev", "works.work.muster.dev", "memberships.membership.muster.dev",
		"memberclusters.membership.muster.dev", "placements.placement.muster.dev",
		"placementdecisions.placement.muster.dev", "worksets.placement.muster.dev",
	}[w.random.IntN(7)]
	if scoped := "cluster" + name; w.clusterScope &&
		(strings.HasPrefix(name, "placements.") || strings.HasPrefix(name, "worksets.")) {
		name = scoped
	}
	if name == "appliedworks.work.muster.dev" {
		admin, where, install = m.admin, m.name, workcrds.InstallOnMember
	}
	w.h.note("definition %s is removed from %s", name, where)
	w.intent.disaster()
	if admin == m.admin {
		w.intent.inventoryLost(m.name)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(w.t, client.IgnoreNotFound(admin.Delete(w.ctx, definition)))
	w.wait(time.Duration(w.random.IntN(60)) * time.Second)
	for admin.Get(w.ctx, client.ObjectKeyFromObject(definition), definition) == nil { // A user completes the deletion.
		w.clearFinalizers(admin, definition)
		w.wait(time.Second)
	}
	w.wait(time.Duration(w.random.IntN(60)) * time.Second)
	w.intent.disaster()
	require.NoError(w.t, install(w.ctx, admin))
	w.h.note("definition %s is installed again", name)
}

// clearFinalizers removes the finalizers of all objects of a definition.
func (w *world) clearFinalizers(admin client.Client, definition *apiextensionsv1.CustomResourceDefinition) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{
		Group: definition.Spec.Group, Version: definition.Spec.Versions[0].Name, Kind: definition.Spec.Names.Kind + "List",
	})
	if admin.List(w.ctx, list) != nil {
		return // The API server does not serve the kind anymore.
	}
	for i := range list.Items {
		o := &list.Items[i]
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := admin.Patch(w.ctx, o, patch); client.IgnoreNotFound(err) != nil {
			w.h.note("remove the finalizers of %s %s: %v", definition.Spec.Names.Kind, o.Name, err)
		}
	}
}

// restoreMember sets a member back to an earlier state, or saves its state if there is none.
func (w *world) restoreMember(m *member) {
	if m.backup == nil {
		w.h.note("%s is backed up", m.name)
		m.backup = &snapshot{w.h.now(), m.server.Save()}
		return
	}
	w.h.note("%s is restored to its state of %s", m.name, m.backup.at)
	w.intent.disaster()
	m.process.kill()
	m.server.Restore(m.backup.state)
	var list corev1.ConfigMapList
	require.NoError(w.t, m.admin.List(w.ctx, &list, client.InNamespace(userSpace)))
	w.intent.restored(m.name, list.Items)
	w.intent.disaster()
	w.startAgent(m)
}

// installOtherHub stores the join.yaml of another hub where the agent of a member reads it.
func (w *world) installOtherHub(m *member) {
	if !w.intent.inFleet[m.name] {
		return // A cluster that is no member may join the other hub.
	}
	if w.other == nil {
		w.startOther()
	}
	m.otherHubInstalled = true
	w.h.note("the join.yaml of another hub is installed on %s", m.name)
	w.intent.disaster()
	w.install(m, w.otherJoinYAML)
}

// churn increases the resourceVersion of the hub. Every ten seconds, the hub detects a restore by a decreased
// resourceVersion. Without churn, writes after the restore could exceed the former resourceVersion before that.
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

// loseWork removes a Work without its finalizers.
func (w *world) loseWork() {
	var list workv1alpha1.WorkList
	require.NoError(w.t, w.admin.List(w.ctx, &list))
	if len(list.Items) == 0 {
		return
	}
	work := &list.Items[w.random.IntN(len(list.Items))]
	w.h.note("Work %s/%s is removed without its finalizers", work.Namespace, work.Name)
	w.intent.disaster()
	w.vanish(work)
}

// vanish removes the finalizers of an object and the object at once, so that no controller observes the deletion.
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
	w.killHub()
	again := &membershipv1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: m.name, Labels: cluster.Labels}, Spec: *cluster.Spec.DeepCopy(),
	}
	w.vanish(cluster)
	require.NoError(w.t, w.admin.Create(w.ctx, again))
	w.startHub()
}

// endFaults ends all faults. Users then repeat their requests.
func (w *world) endFaults() {
	w.h.note("faults end")
	w.net.chaotic.Store(false)
	if w.clock.offset.Load() != 0 {
		w.setClock(nil, 0)
	}
	for _, m := range w.members {
		if m.clock.offset.Load() != 0 {
			w.setClock(m, 0)
		}
	}
	w.heal()
	for _, m := range w.members {
		m.rejoined = false
	}
	if w.intent.unsettled {
		w.wait(time.Minute)
		for _, m := range w.members {
			if w.intent.inFleet[m.name] && (m.otherHubInstalled || w.joined(m.name) != nil) {
				w.joinAgain(m)
				m.otherHubInstalled = false
			}
		}
	}
	w.calmSince = w.h.now()
	w.repair()
}

// joinAgain gives a member the join.yaml of a new JoinToken, as a user does.
func (w *world) joinAgain(m *member) {
	w.tokens++
	m.rejoined = true
	w.h.note("user gives %s a new join.yaml", m.name)
	w.install(m, w.token(w.admin, fmt.Sprint("again-", w.tokens)))
}
