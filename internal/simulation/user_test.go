package simulation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	addonv1alpha1 "github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

var (
	placementNames = []string{"p0", "p1", "q0"}
	workSetNames   = []string{"w0", "w1", "w2", "v0", addonName}
)

// addonName is the name of an Addon. Users change the Addon as they change a WorkSet.
const addonName = "addon"

// second reports whether a Placement or a WorkSet belongs to the second space.
func second(name string) bool { return name[0] == 'q' || name[0] == 'v' }

// spaceOf returns the namespace of a Placement or a WorkSet; empty: it is cluster-scoped.
func (w *world) spaceOf(name string) string {
	switch {
	case !second(name):
		return userSpace
	case w.clusterScope:
		return ""
	default:
		return secondSpace
	}
}

// placementFor returns the name of a random Placement that a WorkSet or the Addon can reference.
func (w *world) placementFor(set string) string {
	if second(set) || set == addonName && w.clusterScope {
		return "q0"
	}
	return placementNames[w.random.IntN(2)]
}

// placementOf returns a Placement or a ClusterPlacement, and its spec.
func (w *world) placementOf(name string) (client.Object, *placementv1alpha1.PlacementSpec) {
	if w.spaceOf(name) == "" {
		p := &placementv1alpha1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return p, &p.Spec
	}
	p := &placementv1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.spaceOf(name), Name: name}}
	return p, &p.Spec
}

// placementObject returns a Placement or a ClusterPlacement with its name only.
func (w *world) placementObject(name string) client.Object {
	p, _ := w.placementOf(name)
	return p
}

// workSetOf returns a WorkSet or a ClusterWorkSet, and its spec.
func (w *world) workSetOf(name string) (client.Object, *placementv1alpha1.WorkSetSpec) {
	if w.spaceOf(name) == "" {
		set := &placementv1alpha1.ClusterWorkSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return set, &set.Spec
	}
	set := &placementv1alpha1.WorkSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.spaceOf(name), Name: name}}
	return set, &set.Spec
}

// workSetOrAddon returns a WorkSet, or the Addon.
func (w *world) workSetOrAddon(name string) client.Object {
	if name == addonName {
		return &addonv1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	set, _ := w.workSetOf(name)
	return set
}

// randomUserAction carries out a random action of a user.
func (w *world) randomUserAction() {
	switch r := w.random; r.IntN(12) {
	case 0, 1, 2:
		w.userChangesWorkSet()
	case 3:
		w.userDeletesWorkSet()
	case 4, 5:
		w.userChangesPlacement()
	case 6:
		w.userDeletesPlacement()
	case 7, 8:
		w.userChangesWork()
	case 9:
		w.userEditsMember()
	case 10:
		w.userChangesMembership()
	case 11:
		w.userAccepts()
	}
}

func (w *world) member() *member { return w.members[w.random.IntN(len(w.members))] }

func (w *world) version() string { return fmt.Sprint(w.random.IntN(1000000)) }

// objects returns some objects with the prefix.
func (w *world) objects(prefix string) map[string]string {
	all := map[string]string{}
	for n := range 1 + w.random.IntN(3) {
		all[fmt.Sprintf("o-%s-%d", prefix, n)] = w.version()
	}
	return all
}

func (w *world) userChangesWorkSet() {
	name := workSetNames[w.random.IntN(len(workSetNames))]
	set := workSetIntent{placement: w.placementFor(name), objects: w.objects(name)}
	if before, ok := w.intent.worksets[name]; ok && w.random.IntN(3) > 0 {
		set.placement = before.placement
	}
	w.h.note("user sets WorkSet %s: placement %s, objects %v", name, set.placement, set.objects)
	before := w.intent.worksets[name]
	w.repeatIfRestored(hasKey(w.intent.worksets, name))
	w.intent.change(func() {
		if before, ok := w.intent.worksets[name]; ok && before.placement != set.placement {
			w.intent.placementChanged(before)
		}
		w.intent.worksets[name] = set
	})
	if _, ok := w.intent.placements[set.placement]; !ok && name == addonName {
		for _, m := range w.members { // an add-on is not updated while its Placement is missing
			w.intent.deletedWithoutEffect(m.name, before.objects)
		}
	}
	w.putWorkSet(name)
}

func (w *world) putWorkSet(name string) {
	want := w.intent.worksets[name]
	if name == addonName {
		w.putAddon(want)
		return
	}
	set, spec := w.workSetOf(name)
	w.put(set, func() {
		spec.Placements = []placementv1alpha1.PlacementReference{{Name: want.placement}}
		spec.Manifests = manifests(want.objects)
		// By default, a member that leaves while it is updated halts the rollout until a user intervenes.
		spec.Rollout.MaxFailures = new(intstr.FromString("100%"))
	})
}

// putAddon sets an Addon with a template, which contains the objects.
func (w *world) putAddon(want workSetIntent) {
	template := &addonv1alpha1.AddonTemplate{ObjectMeta: metav1.ObjectMeta{Name: addonName}}
	w.put(template, func() {
		template.Spec.Manifests = nil
		for _, m := range manifests(want.objects) {
			manifest := addonv1alpha1.TemplateManifest{RawExtension: m.RawExtension}
			template.Spec.Manifests = append(template.Spec.Manifests, manifest)
		}
	})
	a := &addonv1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: addonName}}
	w.put(a, func() {
		a.Spec.Configs = []addonv1alpha1.ConfigKind{{
			Group: addonv1alpha1.GroupVersion.Group, Resource: "addontemplates",
			Defaults: []addonv1alpha1.ObjectName{{Name: addonName}},
		}}
		a.Spec.Removal.DeadlineSeconds = 86400 // A forced removal keeps objects.
		a.Spec.Install = addonv1alpha1.InstallStrategy{
			Type:       addonv1alpha1.InstallPlacements,
			Placements: []addonv1alpha1.PlacementInstall{{Namespace: w.spaceOf(want.placement), Name: want.placement}},
		}
		a.Spec.Install.Placements[0].Rollout.MaxFailures = new(intstr.FromString("100%"))
	})
}

func (w *world) userDeletesWorkSet() {
	name := workSetNames[w.random.IntN(len(workSetNames))]
	w.h.note("user deletes WorkSet %s", name)
	w.repeatIfRestored(hasKey(w.intent.worksets, name))
	objects := w.intent.worksets[name].objects
	w.intent.change(func() { delete(w.intent.worksets, name) })
	if w.remove(w.workSetOrAddon(name)) {
		return
	}
	for _, m := range w.members {
		w.intent.deletedWithoutEffect(m.name, objects)
	}
}

func (w *world) userChangesPlacement() {
	name := placementNames[w.random.IntN(len(placementNames))]
	var want placementIntent
	if w.random.IntN(2) == 0 {
		want.members = []string{}
		for _, m := range w.members {
			if w.random.IntN(3) > 0 {
				want.members = append(want.members, m.name)
			}
		}
		if len(want.members) == 0 {
			want.members = []string{w.member().name}
		}
	}
	w.h.note("user sets Placement %s: members %v", name, want.members)
	w.repeatIfRestored(hasKey(w.intent.placements, name))
	w.intent.change(func() {
		if _, exists := w.intent.placements[name]; !exists {
			for _, set := range w.intent.worksets {
				if set.placement == name {
					w.intent.placementChanged(set)
				}
			}
		}
		w.intent.placements[name] = want
	})
	w.putPlacement(name)
}

func (w *world) putPlacement(name string) {
	want := w.intent.placements[name]
	p, spec := w.placementOf(name)
	w.put(p, func() {
		spec.Policy.Type, spec.Policy.ClusterNames = placementv1alpha1.PickAll, nil
		if want.members != nil {
			spec.Policy.Type, spec.Policy.ClusterNames = placementv1alpha1.PickFixed, want.members
		}
	})
}

func (w *world) userDeletesPlacement() {
	name := placementNames[w.random.IntN(len(placementNames))]
	w.h.note("user deletes Placement %s", name)
	w.repeatIfRestored(hasKey(w.intent.placements, name))
	w.intent.change(func() { delete(w.intent.placements, name) })
	w.remove(w.placementObject(name))
}

func (w *world) userChangesWork() {
	m := w.member()
	if !w.intent.inFleet[m.name] {
		return
	}
	if _, ok := w.intent.works[m.name]; ok && w.random.IntN(3) == 0 {
		w.h.note("user deletes the Work of %s", m.name)
		objects := w.intent.works[m.name]
		w.intent.change(func() { delete(w.intent.works, m.name) })
		if !w.remove(handWritten(m.name)) {
			w.intent.deletedWithoutEffect(m.name, objects)
		}
		return
	}
	objects := w.objects("hand")
	w.h.note("user sets the Work of %s: %v", m.name, objects)
	w.repeatIfRestored(hasKey(w.intent.works, m.name))
	if err := w.admin.Get(w.ctx, client.ObjectKey{Name: "member-" + m.name}, &corev1.Namespace{}); err != nil {
		return // the member has not been accepted yet
	}
	before := w.intent.works[m.name]
	w.intent.change(func() { w.intent.works[m.name] = objects })
	if work := handWritten(m.name); w.admin.Get(w.ctx, client.ObjectKeyFromObject(work), work) != nil {
		maps.DeleteFunc(before, func(o, _ string) bool { _, still := objects[o]; return still })
		w.intent.deletedWithoutEffect(m.name, before)
	}
	w.putWork(m.name)
}

func handWritten(member string) *workv1alpha1.Work {
	return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "member-" + member, Name: "hand"}}
}

func (w *world) putWork(member string) {
	work := handWritten(member)
	w.put(work, func() { work.Spec.Manifests = manifests(w.intent.works[member]) })
}

// repeatIfRestored notes a request for an object that is not in the state that users want. A restore may have created
// the object and its applied objects again.
func (w *world) repeatIfRestored(wanted bool) {
	if !wanted {
		w.intent.repeated()
	}
}

func hasKey[V any](m map[string]V, key string) bool {
	_, ok := m[key]
	return ok
}

// userEditsMember changes or deletes an object on a member, which muster has to repair.
func (w *world) userEditsMember() {
	m := w.member()
	var list corev1.ConfigMapList
	require.NoError(w.t, m.admin.List(w.ctx, &list, client.InNamespace(userSpace)))
	list.Items = slices.DeleteFunc(list.Items, func(o corev1.ConfigMap) bool {
		return o.Name[:2] != "o-" || o.DeletionTimestamp != nil
	})
	if len(list.Items) == 0 {
		return
	}
	o := &list.Items[w.random.IntN(len(list.Items))]
	if w.random.IntN(2) == 0 {
		w.h.note("user deletes %s on %s", o.Name, m.name)
		w.intent.deleteByHand(m.name, o.Name)
		require.NoError(w.t, client.IgnoreNotFound(m.admin.Delete(w.ctx, o)))
		return
	}
	w.h.note("user edits %s on %s", o.Name, m.name)
	o.Data = map[string]string{"version": "edited"}
	if err := m.admin.Update(w.ctx, o); !apierrors.IsConflict(err) {
		require.NoError(w.t, client.IgnoreNotFound(err))
	}
}

// userChangesMembership lets a member leave, or join again.
func (w *world) userChangesMembership() {
	m := w.member()
	if w.admin.Get(w.ctx, client.ObjectKey{Name: m.name}, &membershipv1alpha1.MemberCluster{}) != nil {
		return // lost in a disaster
	}
	if m.otherHubInstalled {
		return // A cluster that is no member may join the other hub.
	}
	inFleet := !w.intent.inFleet[m.name]
	w.h.note("user sets that %s is in the fleet: %t", m.name, inFleet)
	w.intent.change(func() {
		w.intent.inFleet[m.name] = inFleet
		if !inFleet {
			delete(w.intent.works, m.name) // the namespace is deleted with all Works
		}
	})
	w.putMember(m)
}

func (w *world) userAccepts() {
	m := w.member()
	accepted := !w.intent.accepted[m.name]
	w.h.note("user accepts %s: %t", m.name, accepted)
	w.intent.change(func() { w.intent.accepted[m.name] = accepted })
	w.putMember(m)
}

// putMember sets the state that users want in a MemberCluster, if it exists.
func (w *world) putMember(m *member) {
	cluster := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: m.name}}
	if err := w.admin.Get(w.ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
		require.NoError(w.t, client.IgnoreNotFound(err))
		return
	}
	w.put(cluster, func() {
		cluster.Spec.State, cluster.Spec.Accepted = membershipv1alpha1.StateJoin, new(w.intent.accepted[m.name])
		if !w.intent.inFleet[m.name] {
			cluster.Spec.State = membershipv1alpha1.StateLeave
		}
	})
}

// put creates or updates an object of a user. It repeats a request after a conflict.
func (w *world) put(o client.Object, set func()) {
	w.t.Helper()
	for {
		_, err := controllerutil.CreateOrUpdate(w.ctx, w.admin, o, func() error { set(); return nil })
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil { // such as a namespace that is being deleted; repair repeats it
			w.h.note("put %T %s: %v", o, o.GetName(), err)
		}
		return
	}
}

// remove deletes an object of a user, and reports whether it existed.
func (w *world) remove(o client.Object) bool {
	err := w.admin.Delete(w.ctx, o)
	if client.IgnoreNotFound(err) != nil {
		w.h.note("delete %T %s: %v", o, o.GetName(), err)
	}
	return !apierrors.IsNotFound(err)
}

// repair applies the state that users want, as a GitOps controller does, and accepts the members that wait.
func (w *world) repair() {
	w.intent.change(func() {
		for _, m := range w.members {
			w.intent.accepted[m.name] = true
		}
	})
	w.intent.repeated()
	for _, m := range w.members {
		if !w.intent.inFleet[m.name] {
			w.putMember(m)
			continue
		}
		w.acceptMember(m)
	}
	for _, name := range placementNames {
		if _, ok := w.intent.placements[name]; ok {
			w.putPlacement(name)
		} else {
			w.remove(w.placementObject(name))
		}
	}
	for _, name := range workSetNames {
		if _, ok := w.intent.worksets[name]; ok {
			w.putWorkSet(name)
		} else {
			w.remove(w.workSetOrAddon(name))
		}
	}
	for _, m := range slices.Sorted(maps.Keys(w.intent.inFleet)) {
		switch _, ok := w.intent.works[m]; {
		case ok:
			w.putWork(m)
		case w.intent.inFleet[m]:
			w.remove(handWritten(m))
		}
	}
}

// createMissing creates objects of users that are missing, such as a hand-written Work in a namespace that was deleted,
// or an Addon whose deletion was not complete when the user changed the Addon. It also follows the instructions in the
// status of members that do not join again.
func (w *world) createMissing() {
	missing := func(o client.Object) bool {
		return apierrors.IsNotFound(w.admin.Get(w.ctx, client.ObjectKeyFromObject(o), o))
	}
	for _, name := range placementNames {
		if _, wanted := w.intent.placements[name]; wanted && missing(w.placementObject(name)) {
			w.putPlacement(name)
		}
	}
	for _, name := range workSetNames {
		if _, wanted := w.intent.worksets[name]; wanted && missing(w.workSetOrAddon(name)) {
			w.putWorkSet(name)
		}
	}
	for _, m := range w.members {
		if w.intent.inFleet[m.name] && w.joined(m.name) != nil {
			if w.claimOf(w.clusterID(m)) != "" {
				w.acceptMember(m)
			}
			// The hub may have considered the member joined before, by its restored status.
			if !m.rejoined && w.h.now()-w.calmSince > 10*time.Minute && (w.intent.unsettled || !w.hasJoinYAML(m)) {
				w.joinAgain(m)
			}
		}
		if _, wanted := w.intent.works[m.name]; !wanted {
			continue
		}
		if missing(handWritten(m.name)) {
			w.putWork(m.name)
		}
	}
}

// acceptMember accepts a member that waits for an administrator, with or without an existing MemberCluster.
func (w *world) acceptMember(m *member) {
	cluster := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: m.name}}
	w.put(cluster, func() {
		cluster.Spec.State, cluster.Spec.Accepted = membershipv1alpha1.StateJoin, new(true)
		cluster.Spec.ClusterID = w.clusterID(m)
		if claim := w.claimOf(cluster.Spec.ClusterID); claim != "" && w.joined(m.name) != nil {
			cluster.Spec.Claim = claim // as the status of the JoinRequest advises
		}
	})
}

func (w *world) clusterID(m *member) string {
	kubeSystem := &corev1.Namespace{}
	require.NoError(w.t, m.admin.Get(w.ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, kubeSystem))
	return string(kubeSystem.UID)
}

// claimOf returns the fingerprint of the latest JoinRequest that waits for an administrator; empty: no such request.
func (w *world) claimOf(clusterID string) string {
	var list membershipv1alpha1.JoinRequestList
	require.NoError(w.t, w.admin.List(w.ctx, &list, client.InNamespace(membership.RegistrationNamespace)))
	var latest *membershipv1alpha1.JoinRequest
	for i := range list.Items {
		r := &list.Items[i]
		if r.Spec.ClusterID == clusterID && r.Status.Answer == membershipv1alpha1.AnswerHeld &&
			(latest == nil || latest.CreationTimestamp.Before(&r.CreationTimestamp)) {
			latest = r
		}
	}
	if latest == nil {
		return ""
	}
	return registration.Fingerprint(latest.Spec.ClaimKey)
}
