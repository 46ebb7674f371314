package addon

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/muster-sdk/muster/addon/internal/calls"
	"github.com/muster-sdk/muster/addon/internal/removal"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/precondition"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// execute executes one action.
func (l *memberReconciliation) execute(ctx context.Context, action removal.Action, p *preDelete) error {
	switch action {
	case removal.RunHooks:
		return l.runHooks(ctx, p)
	case removal.AskFunc:
		l.askFunction(ctx, p)
	case removal.DeleteHooks:
		return l.deleteWorks(ctx, l.observed.hooks)
	case removal.DeleteWorks:
		own, hosted := split(l.observed.works)
		if len(own) > 0 { // the add-on's agent may have to clean up on the member
			return l.deleteWorks(ctx, own)
		}
		return l.deleteWorks(ctx, hosted)
	case removal.StripFinalizers:
		for _, r := range slices.Concat(l.observed.works, l.observed.hooks) {
			if err := l.releaseUnlessHosted(ctx, r); err != nil {
				return err
			}
		}
	case removal.RevokeCredentials:
		left, err := l.revoke(ctx, l.key.Name, l.key.Namespace)
		if err == nil && left != removal.Absent {
			err = errRetry
		}
		return err
	case removal.RemoveFinalizer:
		if !l.recorded() {
			return errRetry
		}
		before := l.object
		next := before.DeepCopy()
		controllerutil.RemoveFinalizer(next, v1alpha1.MemberAddonFinalizer)
		err := l.client.Patch(ctx, next, precondition.Patch(before))
		return client.IgnoreNotFound(err)
	}
	return nil
}

func (l *memberReconciliation) runHooks(ctx context.Context, p *preDelete) error {
	for _, s := range p.sites {
		if !l.missesHookWork(s) {
			continue
		}
		work := &workv1alpha1.Work{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: s.namespace, Name: hooksName(l.key, s.namespace), Labels: workLabels(l.key, s.namespace),
				Annotations: map[string]string{workv1alpha1.GeneratedByAnnotation: generatedBy(l.key)},
			},
			Spec: s.part.spec,
		}
		work.Spec.ManifestOptions = nil // the API server refuses options for missing manifests
		for i := range s.part.hooks {
			work.Spec.Manifests = append(work.Spec.Manifests, s.part.hooks[i].Manifest())
		}
		if err := l.writer().Create(ctx, work); apierrors.IsAlreadyExists(err) {
			return wrap(l.nameConflict(ctx, l.key, client.ObjectKeyFromObject(work)), "create Work", work)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// askFunction calls the PreDeleter of the agent.
func (l *memberReconciliation) askFunction(ctx context.Context, p *preDelete) {
	done, err := calls.Do(ctx, l.calls, callOf(l.key, l.key.Name, "PreDelete"), func(ctx context.Context) (bool, error) {
		return l.agents[l.key.Name].(PreDeleter).PreDelete(ctx, *p.input)
	})
	if errors.Is(err, calls.ErrBusy) {
		l.result.busy = true
		l.requeueAfter(pollInterval)
		return
	}
	l.function = removal.Hook{State: removal.Running, Since: l.Clock.Now()} // the call can have taken long
	switch {
	case err != nil:
		l.function.State, l.function.Message = removal.Failed, err.Error()
	case done:
		l.function.State = removal.Succeeded
	}
}

func (l *memberReconciliation) deleteWorks(ctx context.Context, works []*record) error {
	for _, r := range works {
		if err := l.deleteWork(ctx, r, l.object.UID); err != nil {
			return err
		}
	}
	return nil
}

// deleteWork annotates a Work with the UID of the MemberAddon that requests its deletion, and deletes it unless it has
// changed since it was observed.
func (c *shared) deleteWork(ctx context.Context, r *record, by types.UID) error {
	version, err := c.request(ctx, r, by)
	if err != nil || version == "" || r.DeletionTimestamp != nil {
		return err
	}
	err = c.writer().Delete(ctx, &r.ObjectMeta, version)
	return wrap(client.IgnoreNotFound(err), "delete Work", &workv1alpha1.Work{ObjectMeta: r.ObjectMeta})
}

// releaseUnlessHosted ends the wait for a Work. On a hosting member that is still a member, the Work is only deleted:
// its namespace stays, so the agent of the hosting member deletes the objects later.
func (l *memberReconciliation) releaseUnlessHosted(ctx context.Context, r *record) error {
	if r.hosted() {
		if host, err := l.memberIn(ctx, r.Namespace); err != nil || host != nil {
			return errors.Join(err, l.deleteWork(ctx, r, l.object.UID))
		}
	}
	return l.releaseWork(ctx, r)
}

// releaseWork deletes a Work and removes the agent's finalizer. Its objects stay on the member.
func (l *memberReconciliation) releaseWork(ctx context.Context, r *record) error {
	if err := l.deleteWork(ctx, r, l.object.UID); err != nil {
		return err
	}
	work := &workv1alpha1.Work{}
	err := l.live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, work)
	if apierrors.IsNotFound(err) || err == nil && work.UID != r.UID {
		return nil
	}
	if err != nil {
		return wrap(err, "read Work", &workv1alpha1.Work{ObjectMeta: r.ObjectMeta})
	}
	before := work.DeepCopy()
	if !controllerutil.RemoveFinalizer(work, workv1alpha1.Finalizer) {
		return nil
	}
	err = l.client.Patch(ctx, work, precondition.Patch(before))
	return wrap(client.IgnoreNotFound(err), "remove the finalizer of Work", work)
}
