package registration

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// holderAnnotation on a ServiceAccount is the holder of all of its tokens.
const holderAnnotation = v1alpha1.GroupName + "/registered-for"

// observed are the existing objects of a registration. Nil: the object does not exist.
type observed struct {
	role    *rbacv1.Role
	binding *rbacv1.RoleBinding
	lease   *coordinationv1.Lease
	account *corev1.ServiceAccount
	secret  *corev1.Secret
	record  record
}

func (r *Registrar) observe(ctx context.Context, reader client.Reader, key client.ObjectKey) (o observed, err error) {
	shared, lease := client.ObjectKey{Namespace: key.Namespace, Name: objectName(key.Name)}, key
	if o.role, err = find[rbacv1.Role](ctx, reader, shared); err != nil {
		return o, err
	}
	if o.binding, err = find[rbacv1.RoleBinding](ctx, reader, shared); err != nil {
		return o, err
	}
	if o.lease, err = find[coordinationv1.Lease](ctx, reader, lease); err != nil {
		return o, err
	}
	if o.account, err = find[corev1.ServiceAccount](ctx, reader, shared); err != nil {
		return o, err
	}
	o.secret, err = find[corev1.Secret](ctx, reader, r.secretKey(key))
	o.record = recordOf(o.secret)
	return o, err
}

func find[T any, P interface {
	*T
	client.Object
}](ctx context.Context, reader client.Reader, key client.ObjectKey) (P, error) {
	object := P(new(T))
	switch err := reader.Get(ctx, key, object); {
	case err == nil:
		return object, nil
	case apierrors.IsNotFound(err):
		return nil, nil
	default:
		return nil, fmt.Errorf("get %s %s: %w", kindOf(object), key, err)
	}
}

// ours returns the existing objects of an add-on in the order of their deletion: the deletion of the first one ends
// its permissions.
func (o *observed) ours(addon string) []client.Object {
	var ours []client.Object
	for _, object := range o.all() {
		if isOf(object, addon) {
			ours = append(ours, object)
		}
	}
	return ours
}

func (o *observed) all() (all []client.Object) {
	if o.binding != nil {
		all = append(all, o.binding)
	}
	if o.account != nil {
		all = append(all, o.account)
	}
	if o.role != nil {
		all = append(all, o.role)
	}
	if o.lease != nil {
		all = append(all, o.lease)
	}
	if o.secret != nil {
		all = append(all, o.secret)
	}
	return all
}

func isOf(object client.Object, addon string) bool {
	return object.GetLabels()[v1alpha1.AddonLabel] == addon
}

// foreign returns an error for an existing object of another owner.
func (w *wanted) foreign(o *observed) error {
	for _, object := range o.all() {
		if _, lease := object.(*coordinationv1.Lease); isOf(object, w.key.Name) || lease && !w.Lease {
			continue
		}
		return refuse(fmt.Sprintf("%s %s exists and does not belong to this add-on: delete it, or label it %s=%s to "+
			"assign it to the add-on",
			kindOf(object), client.ObjectKeyFromObject(object), v1alpha1.AddonLabel, w.key.Name))
	}
	return nil
}

func kindOf(object client.Object) string {
	switch object.(type) {
	case *rbacv1.Role:
		return "Role"
	case *rbacv1.RoleBinding:
		return "RoleBinding"
	case *coordinationv1.Lease:
		return "Lease"
	case *corev1.ServiceAccount:
		return "ServiceAccount"
	}
	return "Secret"
}

func (w *wanted) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: w.key.Namespace, Name: name,
		Labels: map[string]string{v1alpha1.AddonLabel: w.key.Name}, OwnerReferences: w.owners(),
	}
}

func (w *wanted) owners() []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "MemberAddon", Name: w.key.Name, UID: w.MemberAddon.UID,
		Controller: new(true),
	}}
}

func (w *wanted) owned(object client.Object) bool {
	return equality.Semantic.DeepEqual(object.GetOwnerReferences(), w.owners())
}

// upToDate reports whether no change is required.
func (w *wanted) upToDate(o *observed, r *Registrar) bool {
	if w.due(o, r.clock.Now()) || w.foreign(o) != nil || !w.roleObserved(o) || !w.leaseObserved(o) {
		return false
	}
	subject, err := w.subject(o)
	needless := o.account != nil && w.credential != v1alpha1.RegistrationToken
	return err == nil && !needless && w.bindingObserved(o, subject)
}

func (w *wanted) roleObserved(o *observed) bool {
	return o.role != nil &&
		(w.refusal != nil || w.owned(o.role) && equality.Semantic.DeepEqual(o.role.Rules, w.roleRules()))
}

func (w *wanted) leaseObserved(o *observed) bool {
	switch {
	case w.Lease:
		return o.lease != nil && w.owned(o.lease)
	case o.lease != nil:
		return !isOf(o.lease, w.key.Name)
	}
	return true
}

func (w *wanted) bindingObserved(o *observed, subject rbacv1.Subject) bool {
	return o.binding != nil && w.owned(o.binding) && o.binding.RoleRef == w.roleRef() &&
		equality.Semantic.DeepEqual(o.binding.Subjects, []rbacv1.Subject{subject})
}

func (w *wanted) roleRef() rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: objectName(w.key.Name)}
}
