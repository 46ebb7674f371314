package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
)

const (
	// accessName is the name of all objects that Join creates on a member, except the Secret of the token.
	accessName  = "muster-push"
	tokenSecret = accessName + "-token"

	// hubAnnotation is the UID of the hub's namespace kube-system, which identifies the hub of an access.
	hubAnnotation = "membership.muster.dev/hub-id"
	// madeLabel is the label of namespaces that these functions created, which permits them to remove these namespaces.
	madeLabel = "membership.muster.dev/made-by"
	madeHere  = "muster-admin"

	defaultClusterRole = "cluster-admin"
	// tokenTimeout is the timeout for the member's controllers to write the token to its Secret.
	tokenTimeout = 30 * time.Second
)

// access is the access of a hub to a member: a ServiceAccount with a token and permissions. The ClusterRoleBinding owns
// all objects, so that its deletion removes all of them, even if the ServiceAccount itself deletes it.
type access struct {
	member    *cluster
	hubID     string
	name      string // the name of the member on the hub
	namespace string
	// clusterRole is the existing ClusterRole. If empty, a ClusterRole with the rules is created.
	clusterRole string
	rules       []rbacv1.PolicyRule
	// lifetime of the token; zero: until it is revoked.
	lifetime time.Duration
	progress reporter
}

func (a access) role() string {
	if a.rules != nil {
		return accessName
	}
	return a.clusterRole
}

func (a access) rights() []right {
	rights := []right{
		{resource: "namespaces", verbs: "get create"},
		{resource: "serviceaccounts", namespace: a.namespace, verbs: "get create"},
		{resource: "secrets", namespace: a.namespace, verbs: "get create"},
		{group: rbacv1.GroupName, resource: "clusterrolebindings", verbs: "get create"},
	}
	if a.rules != nil {
		rights = append(rights, right{group: rbacv1.GroupName, resource: "clusterroles", verbs: "get create patch"})
	}
	if a.lifetime > 0 {
		rights = append(rights,
			right{resource: "serviceaccounts", subresource: "token", namespace: a.namespace, verbs: "create"})
	}
	return rights
}

// object returns the metadata of an object that Join creates.
func (a access) object(name, namespace string, owner *rbacv1.ClusterRoleBinding) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Name: name, Namespace: namespace,
		Labels:      map[string]string{membership.MemberLabel: a.name},
		Annotations: map[string]string{hubAnnotation: a.hubID},
	}
	if owner != nil {
		meta.OwnerReferences = []metav1.OwnerReference{ownedBy(owner)}
	}
	return meta
}

func ownedBy(owner *rbacv1.ClusterRoleBinding) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding",
		Name: owner.Name, UID: owner.UID}
}

// grant creates missing objects and returns the token.
func (a access) grant(ctx context.Context) (token string, err error) {
	err = a.progress.do("give the hub access to the member", func() (string, error) {
		if err := a.progress.makeNamespace(ctx, a.member, a.namespace); err != nil {
			return "", err
		}
		binding, err := a.bind(ctx)
		if err != nil {
			return "", err
		}
		account := &corev1.ServiceAccount{ObjectMeta: a.object(accessName, a.namespace, binding),
			AutomountServiceAccountToken: new(false)}
		if err := a.member.create(ctx, account); err != nil {
			return "", err
		}
		return fmt.Sprintf("ServiceAccount %s/%s has ClusterRole %s", a.namespace, accessName, a.role()), nil
	})
	if err != nil {
		return "", err
	}
	if a.lifetime > 0 {
		return a.expiringToken(ctx)
	}
	return a.lastingToken(ctx)
}

// bind creates the ClusterRoleBinding, after the ClusterRole that it requires.
func (a access) bind(ctx context.Context) (*rbacv1.ClusterRoleBinding, error) {
	var role *rbacv1.ClusterRole
	if a.rules != nil {
		var err error
		if role, err = a.makeRole(ctx); err != nil {
			return nil, err
		}
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: a.object(accessName, "", nil),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: a.role()},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.namespace, Name: accessName}},
	}
	wanted := binding.DeepCopy()
	if err := a.member.create(ctx, binding); err != nil {
		return nil, err
	}
	if err := a.member.Get(ctx, client.ObjectKeyFromObject(wanted), binding); err != nil {
		return nil, a.member.explain("read ClusterRoleBinding "+accessName, err)
	}
	if binding.RoleRef != wanted.RoleRef || !equality.Semantic.DeepEqual(binding.Subjects, wanted.Subjects) {
		return nil, fmt.Errorf("ClusterRoleBinding %s on the member grants %s %s, which cannot be changed: unjoin the "+
			"member first, then join it with the new access",
			accessName, binding.RoleRef.Kind, binding.RoleRef.Name)
	}
	if role != nil &&
		!slices.ContainsFunc(role.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == binding.UID }) {
		before := role.DeepCopy()
		role.OwnerReferences = []metav1.OwnerReference{ownedBy(binding)}
		if err := a.member.Patch(ctx, role, client.MergeFrom(before)); err != nil {
			return nil, a.member.explain("set the owner of ClusterRole "+accessName, err)
		}
	}
	return binding, nil
}

func (a access) makeRole(ctx context.Context) (*rbacv1.ClusterRole, error) {
	role, err := found(ctx, a.member, client.ObjectKey{Name: accessName}, &rbacv1.ClusterRole{})
	if err != nil {
		return nil, err
	}
	if role == nil {
		role = &rbacv1.ClusterRole{ObjectMeta: a.object(accessName, "", nil), Rules: a.rules}
		return role, a.member.explain("create ClusterRole "+accessName, a.member.Create(ctx, role))
	}
	if equality.Semantic.DeepEqual(role.Rules, a.rules) {
		return role, nil
	}
	before := role.DeepCopy()
	role.Rules = a.rules
	return role, a.member.explain("change ClusterRole "+accessName, a.member.Patch(ctx, role, client.MergeFrom(before)))
}

// lastingToken returns a token in a Secret, which does not expire, because no component would renew it.
func (a access) lastingToken(ctx context.Context) (token string, err error) {
	secret := &corev1.Secret{ObjectMeta: a.object(tokenSecret, a.namespace, nil),
		Type: corev1.SecretTypeServiceAccountToken}
	secret.Annotations[corev1.ServiceAccountNameKey] = accessName
	err = a.progress.await(ctx, "get a token for the hub", tokenTimeout, func(ctx context.Context) (seen, error) {
		// Repeat the creation: a Secret that is older than its ServiceAccount in the cache is deleted.
		now, err := found(ctx, a.member, client.ObjectKeyFromObject(secret), &corev1.Secret{})
		if err != nil {
			return seen{}, err
		}
		if now == nil {
			if err := a.member.create(ctx, secret.DeepCopy()); err != nil {
				return seen{}, err
			}
			now = &corev1.Secret{}
		}
		if token = string(now.Data[corev1.ServiceAccountTokenKey]); token == "" {
			return seen{detail: fmt.Sprintf("Secret %s/%s has no token yet: check that the member's "+
				"kube-controller-manager is running", a.namespace, tokenSecret)}, nil
		}
		return seen{done: true, detail: "valid until it is revoked"}, nil
	})
	return token, err
}

func (a access) expiringToken(ctx context.Context) (token string, err error) {
	err = a.progress.do("get a token for the hub", func() (string, error) {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: accessName}}
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: new(int64(a.lifetime / time.Second))}}
		if err := a.member.SubResource("token").Create(ctx, account, request); err != nil {
			return "", a.member.explain("create a token of ServiceAccount "+accessName, err)
		}
		token = request.Status.Token
		return "valid until " + request.Status.ExpirationTimestamp.UTC().Format(time.RFC3339), nil
	})
	return token, err
}

// namespaceTimeout is the timeout for the deletion of a namespace, for example after a recent leave.
const namespaceTimeout = time.Minute

// makeNamespace creates a namespace with a label, so that it can be removed after the leave.
func (t reporter) makeNamespace(ctx context.Context, c *cluster, name string) error {
	there, err := found(ctx, c, client.ObjectKey{Name: name}, &corev1.Namespace{})
	if err == nil && there != nil && there.DeletionTimestamp != nil {
		err = t.await(ctx, fmt.Sprintf("wait until the previous namespace %s is deleted from the %s", name, c.side),
			namespaceTimeout, func(ctx context.Context) (seen, error) {
				there, err = found(ctx, c, client.ObjectKey{Name: name}, &corev1.Namespace{})
				return seen{done: there == nil || there.DeletionTimestamp == nil, detail: "the namespace is being deleted"}, err
			})
	}
	if err != nil || there != nil {
		return err
	}
	return c.create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{madeLabel: madeHere}}})
}

// origin identifies the owner of an access. Empty fields match any owner.
type origin struct{ hubID, name string }

func (o origin) of(binding *rbacv1.ClusterRoleBinding) bool {
	hubID, made := binding.Annotations[hubAnnotation]
	return made && (o.hubID == "" || o.hubID == hubID) &&
		(o.name == "" || o.name == binding.Labels[membership.MemberLabel])
}

// removeAccess removes the objects that Join created on a member, and the namespace if these functions created it and
// it is unused. The ClusterRoleBinding owns the other objects, so that the user of that binding can perform all steps.
func removeAccess(ctx context.Context, member *cluster, namespace string, from origin) (detail string, err error) {
	binding, err := found(ctx, member, client.ObjectKey{Name: accessName}, &rbacv1.ClusterRoleBinding{})
	if err != nil {
		return "", err
	}
	if binding != nil && !from.of(binding) {
		return "existing objects belong to another member and stay", nil
	}
	space, stays, err := unusedNamespace(ctx, member, namespace)
	access := "ClusterRoleBinding and ServiceAccount " + accessName
	switch {
	case err != nil:
		return "", err
	case binding == nil && space == nil:
		return cmp.Or(stays, "nothing to remove"), nil
	case binding == nil:
		return "namespace " + namespace, member.remove(ctx, space)
	case space == nil && stays != "":
		return access + "; " + stays, member.remove(ctx, binding)
	case space == nil:
		return access, member.remove(ctx, binding)
	}
	before := space.DeepCopy()
	space.OwnerReferences = append(space.OwnerReferences, ownedBy(binding))
	if err := member.Patch(ctx, space, client.MergeFrom(before)); err != nil {
		return "", member.explain("set the owner of namespace "+namespace, err)
	}
	return access + ", namespace " + namespace, member.remove(ctx, binding)
}

// unusedNamespace returns the namespace if these functions created it and it contains no other objects. Otherwise, it
// returns the reason why a namespace that these functions created stays.
func unusedNamespace(ctx context.Context, member *cluster, namespace string) (space *corev1.Namespace, stays string,
	err error) {
	space, err = found(ctx, member, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	if err != nil || space == nil || space.Labels[madeLabel] != madeHere || space.DeletionTimestamp != nil {
		return nil, "", err
	}
	ours := []string{accessName, tokenSecret, "default", "kube-root-ca.crt"}
	for _, of := range []struct {
		kind string
		list client.ObjectList
	}{
		{"Secret", &corev1.SecretList{}}, {"ServiceAccount", &corev1.ServiceAccountList{}},
		{"ConfigMap", &corev1.ConfigMapList{}}, {"Pod", &corev1.PodList{}},
	} {
		if err := member.List(ctx, of.list, client.InNamespace(namespace)); err != nil {
			if apierrors.IsForbidden(err) {
				return nil, fmt.Sprintf("namespace %s stays: the user has no permission to list %s objects in it",
					namespace, of.kind), nil
			}
			return nil, "", member.explain("list the objects in namespace "+namespace, err)
		}
		var other string
		err := eachItem(of.list, func(name string) {
			if !slices.Contains(ours, name) {
				other = name
			}
		})
		if err != nil {
			return nil, "", err
		}
		if other != "" {
			return nil, fmt.Sprintf("namespace %s stays: it contains %s %s", namespace, of.kind, other), nil
		}
	}
	return space, "", nil
}
