package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// AppliedWorkName returns the name of the AppliedWork on a member for a Work on the hub of that name.
func AppliedWorkName(hub, namespace, work string) string {
	const limit, hashed = 253, 10
	sum := sha256.Sum256([]byte(hub + "\x00" + namespace + "\x00" + work))
	if most := limit - hashed - 1; len(work) > most {
		work = strings.TrimRight(work[:most], "-.")
	}
	return work + "-" + hex.EncodeToString(sum[:])[:hashed]
}

// appliedWork is the AppliedWork of one Work in the state that the agent last read or wrote.
type appliedWork struct {
	member     client.Client
	latest     *v1alpha1.AppliedWork
	generation int64 // of the Work; recorded with the next write
}

// desired returns the desired AppliedWork of a Work, without an inventory.
func (a *Agent) desired(work *v1alpha1.Work) *v1alpha1.AppliedWork {
	name := AppliedWorkName(a.options.HubName, work.Namespace, work.Name)
	fieldOwner := work.Spec.Apply.FieldOwner
	if fieldOwner == "" {
		fieldOwner = defaultFieldOwner(name)
	}
	return &v1alpha1.AppliedWork{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.HubLabel: a.options.HubName}},
		Spec: v1alpha1.AppliedWorkSpec{
			Work: v1alpha1.WorkReference{
				Hub: a.options.HubName, Namespace: work.Namespace, Name: work.Name, UID: work.UID, Generation: work.Generation,
				HubRestored: a.options.HubRestored(),
			},
			FieldOwner: fieldOwner, Delete: work.Spec.Delete, Executor: work.Spec.Executor,
		},
	}
}

// defaultFieldOwner returns the field manager of a Work that does not set one. It appears in the messages of
// conflicts.
func defaultFieldOwner(appliedWork string) string {
	const prefix, limit = "muster-work-", 128
	if len(prefix)+len(appliedWork) <= limit {
		return prefix + appliedWork
	}
	hash := appliedWork[strings.LastIndex(appliedWork, "-"):]
	return prefix + appliedWork[:limit-len(prefix)-len(hash)] + hash
}

// read reads the AppliedWork of that name from the cache, or keeps the last written one if that is newer. Afterwards,
// latest is nil if none exists.
func (r *appliedWork) read(ctx context.Context, cached client.Reader, name string) error {
	found := &v1alpha1.AppliedWork{}
	err := cached.Get(ctx, client.ObjectKey{Name: name}, found)
	switch {
	case apierrors.IsNotFound(err) && r.latest == nil:
		return nil
	case apierrors.IsNotFound(err):
		// An administrator deleted the AppliedWork, or the cache has not observed its creation.
		err = r.member.Get(ctx, client.ObjectKey{Name: name}, found)
		if apierrors.IsNotFound(err) {
			r.latest = nil
			return nil
		}
	}
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("read AppliedWork %s: %w: %w", name, errNoDefinition, err)
	}
	if err != nil {
		return fmt.Errorf("read AppliedWork %s: %w", name, err)
	}
	if r.latest != nil && r.latest.UID == found.UID {
		if order, err := resourceversion.CompareResourceVersion(found.ResourceVersion,
			r.latest.ResourceVersion); err == nil && order < 0 {
			return nil
		}
	}
	r.latest = found
	return nil
}

// open creates the AppliedWork of a Work if none exists. Its inventory contains the desired objects, which must be
// recorded before they are applied, and the objects that were found on the member. If an AppliedWork exists, open
// transfers its inventory to the Work and updates the spec.
func (r *appliedWork) open(ctx context.Context, desired *v1alpha1.AppliedWork, objects []apply.Object,
	found []v1alpha1.AppliedResource) error {
	r.generation = desired.Spec.Work.Generation
	if r.latest == nil {
		desired.Status.Resources = rebuilt(objects, found, time.Now())
		updateOrphanedCondition(desired, v1alpha1.ReasonInventoryRebuilt, time.Now())
		err := r.member.Create(ctx, desired)
		if apierrors.IsAlreadyExists(err) {
			if err := r.member.Get(ctx, client.ObjectKeyFromObject(desired), desired); err != nil {
				return fmt.Errorf("read AppliedWork %s: %w", desired.Name, err)
			}
			r.latest = desired
			return errChangedConcurrently
		}
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return fmt.Errorf("create AppliedWork %s: %w: %w", desired.Name, errNoDefinition, err)
		}
		if err != nil {
			return fmt.Errorf("create AppliedWork %s: %w", desired.Name, err)
		}
		r.latest = desired
		return nil
	}
	have := r.latest.Spec.Work
	if want := desired.Spec.Work; have.Hub != want.Hub || have.Namespace != want.Namespace || have.Name != want.Name {
		return fmt.Errorf("AppliedWork %s belongs to Work %s/%s of hub %s: set a different HubName for each hub",
			desired.Name, have.Namespace, have.Name, have.Hub)
	}
	desired.Spec.FieldOwner = r.latest.Spec.FieldOwner // the field manager must not change while it owns fields
	next := r.latest.DeepCopy()
	reason := adopt(next, desired, objects, time.Now())
	if desired.Spec.Work.UID == have.UID && desired.Spec.Work.Generation > have.Generation {
		next.Spec.Work.Generation = have.Generation // a new generation alone is not written
	}
	if reason == "" && reflect.DeepEqual(r.latest.Spec, next.Spec) &&
		r.latest.Labels[v1alpha1.HubLabel] == desired.Labels[v1alpha1.HubLabel] {
		return nil
	}
	if next.Labels == nil {
		next.Labels = map[string]string{}
	}
	next.Labels[v1alpha1.HubLabel] = desired.Labels[v1alpha1.HubLabel]
	next.Status.Resources = apply.Ahead(next.Status.Resources, objects)
	updateOrphanedCondition(next, reason, time.Now())
	return r.update(ctx, next)
}

// errNoDefinition means that the member does not serve AppliedWorks.
var errNoDefinition = errors.New("the CustomResourceDefinition of AppliedWorks is missing on the member")

// record writes an inventory if it differs from the last written one.
func (r *appliedWork) record(ctx context.Context, resources []v1alpha1.AppliedResource) error {
	if reflect.DeepEqual(r.latest.Status.Resources, resources) || len(r.latest.Status.Resources)+len(resources) == 0 {
		return nil
	}
	next := r.latest.DeepCopy()
	next.Status.Resources = resources
	updateOrphanedCondition(next, "", time.Now())
	return r.update(ctx, next)
}

func (r *appliedWork) update(ctx context.Context, next *v1alpha1.AppliedWork) error {
	if r.generation != 0 {
		next.Spec.Work.Generation = r.generation
	}
	err := r.member.Update(ctx, next)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return r.rereadAfterConflict(ctx, next.Name, err)
	}
	if err != nil {
		return fmt.Errorf("write AppliedWork %s: %w", next.Name, err)
	}
	r.latest = next
	return nil
}

// rereadAfterConflict reads the AppliedWork after another client has changed it. If the read fails, the next reconcile
// reads it.
func (r *appliedWork) rereadAfterConflict(ctx context.Context, name string, err error) error {
	r.latest = &v1alpha1.AppliedWork{}
	if r.member.Get(ctx, client.ObjectKey{Name: name}, r.latest) != nil {
		r.latest = nil
	}
	return fmt.Errorf("%w: %w", errChangedConcurrently, err)
}

// close deletes the AppliedWork after all objects of its inventory were deleted. Its preconditions protect a later
// version of the AppliedWork.
func (r *appliedWork) close(ctx context.Context) error {
	err := r.member.Delete(ctx, r.latest, precondition.Unchanged(r.latest))
	if apierrors.IsConflict(err) {
		return r.rereadAfterConflict(ctx, r.latest.Name, err)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete AppliedWork %s: %w", r.latest.Name, err)
	}
	r.latest = nil
	return nil
}

// recordRelease records the release that a user requested by the annotation, if it is set.
func (r *appliedWork) recordRelease(ctx context.Context) error {
	next := r.latest.DeepCopy()
	if !consumeRelease(next) {
		return nil
	}
	return r.update(ctx, next)
}

// request records that a user requested the deletion of the Work, before the first object is deleted.
func (r *appliedWork) request(ctx context.Context, work types.UID) error {
	if r := r.latest.Status.DeletionRequest; r != nil && r.WorkUID == work {
		return nil
	}
	next := r.latest.DeepCopy()
	next.Spec.Work.UID = work
	next.Status.DeletionRequest = &v1alpha1.DeletionRequest{WorkUID: work, ObservedTime: metav1.Now()}
	return r.update(ctx, next)
}

// owner returns the owner of the objects.
func (r *appliedWork) owner() apply.Owner { return ownerOf(r.latest) }

func ownerOf(applied *v1alpha1.AppliedWork) apply.Owner {
	return apply.Owner{
		Reference: metav1.OwnerReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "AppliedWork", Name: applied.Name, UID: applied.UID,
		},
		FieldOwner: applied.Spec.FieldOwner,
	}
}
