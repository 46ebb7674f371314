package registration

import (
	"context"
	"errors"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/precondition"
)

// act creates missing objects, in an order in which an interruption after every step is safe.
func (r *Registrar) act(ctx context.Context, w *wanted, o *observed) error {
	if err := w.foreign(o); err != nil {
		return err
	}
	if err := r.withdraw(ctx, w, o); err != nil {
		return err
	}
	refused := r.ensureRole(ctx, w, o)
	if _, people := errors.AsType[*problem](refused); refused != nil && (o.role == nil || !people) {
		return refused
	}
	// An agent with a Role keeps it until the desired rules can be granted.
	if err := r.ensureLease(ctx, w, o); err != nil {
		return err
	}
	issuing := r.issue(ctx, w, o)
	if err := r.ensureBinding(ctx, w, o); err != nil {
		return err
	}
	if issuing != nil {
		return issuing
	}
	if o.account != nil && w.credential != v1alpha1.RegistrationToken {
		if err := r.remove(ctx, o.account); err != nil { // this deletes the tokens
			return err
		}
		o.account = nil
	}
	return refused
}

// withdraw revokes the access of another holder.
func (r *Registrar) withdraw(ctx context.Context, w *wanted, o *observed) error {
	if o.binding != nil && o.record.For != w.holder || o.binding != nil && o.binding.RoleRef != w.roleRef() {
		if err := r.remove(ctx, o.binding); err != nil {
			return err
		}
		o.binding = nil
	}
	if o.account != nil && o.account.Annotations[holderAnnotation] != w.holder {
		if err := r.remove(ctx, o.account); err != nil {
			return err
		}
		o.account = nil
	}
	return nil
}

func (r *Registrar) ensureRole(ctx context.Context, w *wanted, o *observed) error {
	if w.refusal != nil {
		return w.refusal
	}
	if w.roleObserved(o) {
		return nil
	}
	role, write := &rbacv1.Role{ObjectMeta: w.meta(objectName(w.key.Name))}, r.create
	if o.role != nil {
		role, write = o.role.DeepCopy(), r.update
		role.OwnerReferences = w.owners()
	}
	role.Rules = w.roleRules()
	err := write(ctx, role)
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "attempting to grant RBAC permissions not "+
		"currently held") {
		return refuse("the hub cannot grant permissions that it does not have: grant these rules to the hub's user, " +
			"or remove them (" + err.Error() + ")")
	}
	if err == nil {
		o.role = role
	}
	return err
}

func (r *Registrar) ensureLease(ctx context.Context, w *wanted, o *observed) error {
	switch {
	case w.leaseObserved(o):
		return nil
	case o.lease == nil:
		o.lease = &coordinationv1.Lease{ObjectMeta: w.meta(w.key.Name)}
		return r.create(ctx, o.lease)
	case w.Lease:
		o.lease = o.lease.DeepCopy()
		o.lease.OwnerReferences = w.owners()
		return r.update(ctx, o.lease)
	}
	return r.remove(ctx, o.lease)
}

// ensureBinding binds the Role to the holder of the current credential. The holder of the next one is bound when it
// exists.
func (r *Registrar) ensureBinding(ctx context.Context, w *wanted, o *observed) error {
	if !w.usable(o, r.clock.Now()) {
		return nil
	}
	subject, err := w.subject(o)
	if err != nil || w.bindingObserved(o, subject) {
		return err
	}
	binding, write := &rbacv1.RoleBinding{ObjectMeta: w.meta(objectName(w.key.Name)), RoleRef: w.roleRef()}, r.create
	if o.binding != nil {
		binding, write = o.binding.DeepCopy(), r.update
		binding.OwnerReferences = w.owners()
	}
	binding.Subjects = []rbacv1.Subject{subject}
	if err := write(ctx, binding); err != nil {
		return err
	}
	o.binding = binding
	return nil
}

func (r *Registrar) ensureAccount(ctx context.Context, w *wanted, o *observed) error {
	if o.account != nil {
		return nil
	}
	account := &corev1.ServiceAccount{ObjectMeta: w.meta(objectName(w.key.Name)), AutomountServiceAccountToken: new(false)}
	account.Annotations = map[string]string{holderAnnotation: w.holder}
	if err := r.create(ctx, account); err != nil {
		return err
	}
	o.account = account
	return nil
}

func (r *Registrar) create(ctx context.Context, object client.Object) error {
	if err := r.client.Create(ctx, object); err != nil {
		return fmt.Errorf("create %s %s: %w", kindOf(object), client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// update fails if the object has changed since it was read.
func (r *Registrar) update(ctx context.Context, object client.Object) error {
	if err := r.client.Update(ctx, object); err != nil {
		return fmt.Errorf("update %s %s: %w", kindOf(object), client.ObjectKeyFromObject(object), err)
	}
	return nil
}

func (r *Registrar) remove(ctx context.Context, object client.Object) error {
	if err := client.IgnoreNotFound(r.client.Delete(ctx, object, precondition.Unchanged(object))); err != nil {
		return fmt.Errorf("delete %s %s: %w", kindOf(object), client.ObjectKeyFromObject(object), err)
	}
	return nil
}
