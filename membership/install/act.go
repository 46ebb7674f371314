package install

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/internal/clusterid"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// install installs the agent, and reports the result.
func (r *Runner) install(ctx context.Context, m *member, target Target, s step) error {
	cluster := target.Cluster
	status := &v1alpha1.InstallStatus{Hash: r.hash, RequestedAt: requestedAt(cluster), Recovery: s.Recovery}
	limited, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	if err := r.callInstaller(limited, m, target); err != nil {
		if ctx.Err() != nil || apierrors.IsConflict(err) {
			return err
		}
		err = fmt.Errorf("install the agent of member %s: %w", cluster.Name, err)
		return errors.Join(err,
			r.report(ctx, cluster, condition(v1alpha1.ReasonInstallFailed, advice(err, cluster)), cluster.Status.Install))
	}
	status.InstalledAt = new(metav1.NewTime(r.Clock.Now()))
	return r.report(ctx, cluster, s.Then, status)
}

// callInstaller creates a credential that is valid for this member only, and calls the installer.
func (r *Runner) callInstaller(ctx context.Context, m *member, target Target) error {
	if err := r.identify(ctx, target); err != nil {
		return err
	}
	var err error
	r.mu.Lock()
	m.since, m.gaveUp = time.Time{}, false // from an earlier leave
	r.mu.Unlock()
	m.noToken = false
	if target.Bootstrap, err = r.bootstrap(ctx, target.Cluster); err != nil {
		return err
	}
	target.Cluster = target.Cluster.DeepCopy()
	if err := r.Installer.Install(ctx, target); err != nil {
		return &memberError{err}
	}
	return nil
}

// memberError is an error of a request to a member. All other errors are errors of the hub.
type memberError struct{ error }

// Unwrap returns the error.
func (e *memberError) Unwrap() error { return e.error }

// identify determines the cluster ID if it is not set, and writes it to the MemberCluster. This reserves the cluster
// ID: the agent of that cluster belongs to this member, regardless of the name that it requests.
func (r *Runner) identify(ctx context.Context, target Target) error {
	id := target.Cluster.Spec.ClusterID
	if id == "" {
		var err error
		if id, err = clusterid.Of(ctx, target.Config); err != nil {
			return &memberError{fmt.Errorf("determine the identity of the member: %w", err)}
		}
	}
	return r.ids.Reserve(ctx, target.Cluster, id)
}

// uninstall removes the installed objects. If the member refuses the hub's credential, the objects stay.
func (r *Runner) uninstall(ctx context.Context, m *member, target Target) error {
	cluster := target.Cluster
	if err := r.discard(ctx, m, cluster); err != nil {
		return err
	}
	if uninstaller, can := r.Installer.(Uninstaller); can {
		limited, cancel := context.WithTimeout(ctx, r.Timeout)
		defer cancel()
		err := uninstaller.Uninstall(limited, Target{Cluster: cluster.DeepCopy(), Config: target.Config})
		if refuses(err) {
			r.giveUp(cluster, m, "The member refuses the hub's credential: "+err.Error())
			return nil
		}
		if err != nil {
			return fmt.Errorf("remove the agent of member %s: %w", cluster.Name, err)
		}
	}
	return r.report(ctx, cluster, condition(v1alpha1.ReasonLeft, "The cluster has left, and the installed objects were "+
		"removed."), nil)
}

// retire deletes the installation state of a member whose join mode has changed. The installed objects stay.
func (r *Runner) retire(ctx context.Context, cluster *v1alpha1.MemberCluster) error {
	if cluster.Status.Install == nil &&
		meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionInstalled) == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := r.discard(ctx, &member{}, cluster); err != nil {
		return err
	}
	cluster = cluster.DeepCopy()
	uid := cluster.UID
	return client.IgnoreNotFound(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		before := cluster.DeepCopy()
		cluster.Status.Install = nil
		meta.RemoveStatusCondition(&cluster.Status.Conditions, v1alpha1.ConditionInstalled)
		err := r.client.Status().Patch(ctx, cluster,
			client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if !apierrors.IsConflict(err) {
			return err
		}
		if again := r.live.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); again != nil || cluster.UID != uid ||
			cluster.Spec.JoinMode == v1alpha1.JoinInstall {
			return again
		}
		return err
	}))
}

// giveUp keeps the installed objects on a member, and records an Event.
func (r *Runner) giveUp(cluster *v1alpha1.MemberCluster, m *member, why string) {
	r.mu.Lock()
	first := !m.gaveUp
	m.gaveUp = true
	r.mu.Unlock()
	if first {
		r.recorder.Eventf(cluster, nil, corev1.EventTypeWarning, "AgentNotRemoved", "Uninstall", "%s",
			lifecycle.FormatMessage(
				"The installed objects stay on the member: remove them manually. "+why))
	}
}

// report updates the status, and records an Event if the reason has changed. Concurrent changes of the status by the
// hub are kept.
func (r *Runner) report(ctx context.Context, cluster *v1alpha1.MemberCluster, installed *metav1.Condition,
	status *v1alpha1.InstallStatus) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	installed.Message = lifecycle.FormatMessage(installed.Message)
	installed.ObservedGeneration, installed.LastTransitionTime = cluster.Generation, metav1.NewTime(r.Clock.Now())
	was, written := "", false
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		before := cluster.DeepCopy()
		was = reasonOf(before)
		meta.SetStatusCondition(&cluster.Status.Conditions, *installed)
		cluster.Status.Install = status
		if equality.Semantic.DeepEqual(before.Status, cluster.Status) {
			return nil
		}
		err := r.client.Status().Patch(ctx, cluster,
			client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		written = err == nil
		if !apierrors.IsConflict(err) {
			return err
		}
		uid := cluster.UID
		if again := r.live.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); again != nil || cluster.UID != uid {
			return again
		}
		return err
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("update the status of MemberCluster %s: %w", cluster.Name, err)
	}
	if written && was != installed.Reason && installed.Reason != v1alpha1.ReasonNotAccepted &&
		installed.Reason != v1alpha1.ReasonInstallWaiting {
		kind := corev1.EventTypeNormal
		switch installed.Reason {
		case v1alpha1.ReasonInstallFailed, v1alpha1.ReasonAgentNotHealthy, v1alpha1.ReasonAgentNotReturned:
			kind = corev1.EventTypeWarning
		}
		// +event:reason=the reason of the condition Installed
		// +event:type=Warning if the reason is InstallFailed, AgentNotHealthy or AgentNotReturned, else Normal
		// +event:message=the message of the condition
		r.recorder.Eventf(cluster, nil, kind, installed.Reason, "Install", "%s", installed.Message)
	}
	return nil
}

// refuses reports whether a member has refused the hub's credential.
func refuses(err error) bool { return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) }

// advice returns the message for a failure. It contains the next step on the member only if the member has failed.
func advice(err error, cluster *v1alpha1.MemberCluster) string {
	what := err.Error() + "."
	ref := cluster.Spec.KubeConfigSecretRef
	_, ofMember := errors.AsType[*memberError](err)
	switch {
	case !ofMember && apierrors.IsForbidden(err):
		what += " The hub's ServiceAccount is missing permissions. Apply the manifests in the folder " +
			"membership/install/rbac to the hub."
	case !ofMember:
	case apierrors.IsUnauthorized(err) && ref != nil:
		what += fmt.Sprintf(" Put a valid credential into the Secret %s.", ref.Name)
	case apierrors.IsForbidden(err) && ref != nil:
		what += fmt.Sprintf(" Grant this permission on the member to the subject of the kubeconfig in the Secret %s.",
			ref.Name)
	}
	if cluster.Status.Install != nil {
		what += " The previously installed agent continues to run."
	}
	return what + " The hub retries the installation."
}
