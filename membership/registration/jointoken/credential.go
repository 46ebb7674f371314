package jointoken

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"reflect"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// assets are what a JoinToken owns, as they are on the hub; nil is what is missing.
type assets struct {
	token      *v1alpha1.JoinToken
	secret     *corev1.Secret
	account    *corev1.ServiceAccount
	binding    *rbacv1.RoleBinding
	credential held
	seenAt     time.Time // by the reconciler's clock
}

func (r *reconciler) observe(ctx context.Context, token *v1alpha1.JoinToken) (*assets, error) {
	t := &assets{token: token, secret: secretOf(token), account: accountOf(token), binding: bindingOf(token), seenAt: r.clock.Now()}
	var err error
	if t.secret, err = get(ctx, r.reader, token, t.secret); err != nil {
		return nil, err
	}
	if t.account, err = get(ctx, r.reader, token, t.account); err != nil {
		return nil, err
	}
	if t.binding, err = get(ctx, r.reader, token, t.binding); err != nil {
		return nil, err
	}
	bootstrap := bootstrapIn(t.secret)
	if bootstrap == nil || t.account == nil || !bound(t.binding, token) {
		return t, nil
	}
	t.credential.Usable = bootstrap.Server == r.hub.Server && bytes.Equal(bootstrap.CA, r.hub.CA) &&
		bootstrap.Namespace == token.Namespace && bootstrap.TokenName == token.Name &&
		t.secret.Annotations[accountUIDAnnotation] == string(t.account.UID)
	t.credential.IssuedAt, t.credential.Lifetime = lifeOf(t.secret)
	return t, nil
}

// get returns nil for what is missing, and an error for what somebody else made: a Secret is not overwritten,
// and a ServiceAccount that may have other permissions not handed out.
func get[T client.Object](ctx context.Context, reader client.Reader, token *v1alpha1.JoinToken, object T) (T, error) {
	var missing T
	kind := reflect.TypeFor[T]().Elem().Name()
	name := client.ObjectKeyFromObject(object)
	err := reader.Get(ctx, name, object)
	if apierrors.IsNotFound(err) {
		return missing, nil
	}
	if err != nil {
		return missing, fmt.Errorf("get %s %s: %w", kind, name, err)
	}
	if !metav1.IsControlledBy(object, token) {
		return missing, fmt.Errorf("%s %s is not this JoinToken's: delete it, or give the JoinToken another name", kind, name)
	}
	return object, nil
}

// issue makes what is missing, and says what there is now, in an order in which a restart between any two finds the way on.
func (r *reconciler) issue(ctx context.Context, t *assets, lifetime time.Duration) error {
	if t.account == nil {
		t.account = accountOf(t.token)
		if err := r.client.Create(ctx, t.account); err != nil {
			return fmt.Errorf("create ServiceAccount %s: %w", t.account.Name, err)
		}
	}
	if !bound(t.binding, t.token) {
		if err := r.bind(ctx, t); err != nil {
			return err
		}
	}
	seconds := int64(lifetime / time.Second)
	issued := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := r.client.SubResource("token").Create(ctx, t.account, issued); err != nil {
		return fmt.Errorf("issue a token of ServiceAccount %s: %w", t.account.Name, err)
	}
	bootstrap := r.hub
	bootstrap.Namespace, bootstrap.TokenName = t.token.Namespace, t.token.Name
	bootstrap.Token, bootstrap.ExpirationTime = issued.Status.Token, issued.Status.ExpirationTimestamp.Time
	if bootstrap.Key = macKey(t.secret); bootstrap.Key == nil {
		bootstrap.Key = make([]byte, keySize)
		if _, err := io.ReadFull(r.random, bootstrap.Key); err != nil {
			return fmt.Errorf("make a key for JoinToken %s: %w", t.token.Name, err)
		}
	}
	joinYAML, err := bootstrap.Marshal()
	if err != nil {
		return err
	}
	granted := time.Duration(ptr.Deref(issued.Spec.ExpirationSeconds, seconds)) * time.Second
	write := r.client.Update
	if t.secret == nil {
		t.secret = secretOf(t.token)
		write = func(ctx context.Context, secret client.Object, _ ...client.UpdateOption) error {
			return r.client.Create(ctx, secret)
		}
	}
	fill(t.secret, joinYAML, t.seenAt, granted, t.account.UID)
	if err := write(ctx, t.secret); err != nil {
		return fmt.Errorf("write Secret %s: %w", t.secret.Name, err)
	}
	t.credential = held{Usable: true, IssuedAt: t.seenAt, Lifetime: granted}
	return nil
}

func (r *reconciler) bind(ctx context.Context, t *assets) error {
	if t.binding != nil { // Its role cannot be changed.
		if err := client.IgnoreNotFound(r.client.Delete(ctx, t.binding)); err != nil {
			return fmt.Errorf("delete RoleBinding %s, which somebody has changed: %w", t.binding.Name, err)
		}
	}
	t.binding = bindingOf(t.token)
	if err := r.client.Create(ctx, t.binding); err != nil {
		return fmt.Errorf("create RoleBinding %s: %w", t.binding.Name, err)
	}
	return nil
}

func (r *reconciler) withdraw(ctx context.Context, t *assets) error {
	if t.secret == nil || !empty(t.secret) {
		return nil
	}
	if err := r.client.Update(ctx, t.secret); err != nil {
		return fmt.Errorf("take the credential out of Secret %s: %w", t.secret.Name, err)
	}
	return nil
}

func (r *reconciler) remove(ctx context.Context, t *assets) error {
	if err := r.withdraw(ctx, t); err != nil {
		return err
	}
	if t.account != nil {
		if err := client.IgnoreNotFound(r.client.Delete(ctx, t.account)); err != nil {
			return fmt.Errorf("delete ServiceAccount %s: %w", t.account.Name, err)
		}
	}
	if t.binding != nil {
		if err := client.IgnoreNotFound(r.client.Delete(ctx, t.binding)); err != nil {
			return fmt.Errorf("delete RoleBinding %s: %w", t.binding.Name, err)
		}
	}
	return nil
}

func secretOf(token *v1alpha1.JoinToken) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metaOf(token, token.Name)}
}

func accountOf(token *v1alpha1.JoinToken) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metaOf(token, "join-"+token.Name), AutomountServiceAccountToken: new(false)}
}

func bindingOf(token *v1alpha1.JoinToken) *rbacv1.RoleBinding {
	account := accountOf(token)
	return &rbacv1.RoleBinding{
		ObjectMeta: metaOf(token, account.Name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: membership.BootstrapClusterRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account.Name, Namespace: account.Namespace}},
	}
}

func bound(binding *rbacv1.RoleBinding, token *v1alpha1.JoinToken) bool {
	want := bindingOf(token)
	return binding != nil && binding.RoleRef == want.RoleRef && equality.Semantic.DeepEqual(binding.Subjects, want.Subjects)
}

func metaOf(token *v1alpha1.JoinToken, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: token.Namespace,
		Labels: map[string]string{membership.JoinTokenLabel: token.Name},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "JoinToken",
			Name: token.Name, UID: token.UID, Controller: new(true),
		}},
	}
}
