package jointoken

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/jointoken/internal/bootstrapsecret"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// assets are the observed objects of a JoinToken; nil: the object does not exist.
type assets struct {
	token      *v1alpha1.JoinToken
	secret     *corev1.Secret
	binding    *rbacv1.RoleBinding
	issuer     issuer
	credential existing
	values     []byte    // desired chart values for the existing credential; nil without a usable Bootstrap
	seenAt     time.Time // by the reconciler's clock
}

// issuer issues the credentials of one JoinToken, according to its type. All methods use the observed objects.
type issuer interface {
	observe(ctx context.Context) error
	// describe sets the observed properties of the credential, except its age.
	describe(credential *existing)
	// subject returns the subject that the credentials authenticate.
	subject() rbacv1.Subject
	// uid returns the UID of the object that the credentials depend on; empty: it does not exist.
	uid() types.UID
	// holds reports whether a bootstrap with the right uid contains the credential that would be issued now.
	holds(bootstrap *registration.Bootstrap) bool
	// issue creates missing objects and sets token and expiration. It returns the granted lifetime.
	issue(ctx context.Context, bootstrap *registration.Bootstrap,
		lifetime time.Duration) (granted time.Duration, err error)
	// withdraw lets copies work until the given time. Zero: until they expire.
	withdraw(ctx context.Context, until time.Time) error
	// remove invalidates every copy.
	remove(ctx context.Context) error
}

func (r *reconciler) issuerOf(token *v1alpha1.JoinToken, now time.Time) issuer {
	if token.Spec.Type == v1alpha1.JoinTokenBootstrapToken {
		return &bootstrapTokens{store: r.store(), token: token, now: now}
	}
	return &accountTokens{reader: r.reader, client: r.client, token: token}
}

func (r *reconciler) store() *bootstrapsecret.Store {
	return &bootstrapsecret.Store{Reader: r.reader, Client: r.client, Random: r.random}
}

func (r *reconciler) observe(ctx context.Context, token *v1alpha1.JoinToken) (*assets, error) {
	now := r.clock.Now()
	t := &assets{token: token, secret: secretOf(token), issuer: r.issuerOf(token, now), seenAt: now}
	var err error
	if t.secret, err = get(ctx, r.reader, token, t.secret); err != nil {
		return nil, err
	}
	if t.binding, err = get(ctx, r.reader, token, bindingOf(token, t.issuer.subject())); err != nil {
		return nil, err
	}
	if err = t.issuer.observe(ctx); err != nil {
		return nil, err
	}
	t.issuer.describe(&t.credential)
	if gone := t.credential.Problem == "" && t.issuer.uid() == "" && isAdopted(t.secret); gone {
		t.credential.Problem = "The bootstrap token of an administrator was deleted: create it again, or delete this " +
			"JoinToken"
	}
	bootstrap := bootstrapIn(t.secret)
	if bootstrap == nil || t.issuer.uid() == "" || !bound(t.binding, bindingOf(token, t.issuer.subject())) {
		return t, nil
	}
	hub, err := r.hubFor(ctx)
	if err != nil {
		return nil, err
	}
	t.credential.Usable = bootstrap.HubID == hub.HubID && bootstrap.Server == r.hub.Server &&
		bytes.Equal(bootstrap.CA, r.hub.CA) &&
		bootstrap.Namespace == token.Namespace && bootstrap.TokenName == token.Name &&
		t.secret.Annotations[sourceUIDAnnotation] == string(t.issuer.uid()) && t.issuer.holds(bootstrap)
	t.credential.IssuedAt, t.credential.Lifetime = lifeOf(t.secret)
	if t.values, err = valuesFor(bootstrap, token.Spec.ClusterID); err != nil {
		return nil, err
	}
	t.credential.Incomplete = !bytes.Equal(t.secret.Data[registration.ValuesKey], t.values)
	return t, nil
}

// get returns nil for an object that does not exist, and an error for an object that the controller did not create:
// the controller neither overwrites such a Secret nor issues tokens of such a ServiceAccount, which may have other
// permissions.
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
	owner := metav1.GetControllerOf(object)
	switch {
	case owner != nil && owner.UID == token.UID:
		return object, nil
	case owner != nil && owner.Kind == "JoinToken" && owner.Name == token.Name:
		return missing, fmt.Errorf("%s %s belongs to a deleted JoinToken of the same name: waiting for the garbage "+
			"collector to delete it", kind, name)
	default:
		return missing, fmt.Errorf("%s %s does not belong to this JoinToken: delete that object, or use another name for "+
			"the JoinToken", kind, name)
	}
}

// issue creates missing objects and updates the observed ones, in an order in which a restart between any two writes
// can continue.
func (r *reconciler) issue(ctx context.Context, t *assets, lifetime time.Duration) error {
	if want := bindingOf(t.token, t.issuer.subject()); !bound(t.binding, want) {
		if err := r.bind(ctx, t, want); err != nil {
			return err
		}
	}
	bootstrap, err := r.hubFor(ctx)
	if err != nil {
		return err
	}
	bootstrap.Namespace, bootstrap.TokenName, bootstrap.Key = t.token.Namespace, t.token.Name, macKey(t.secret)
	granted, err := t.issuer.issue(ctx, &bootstrap, lifetime)
	if err != nil {
		return err
	}
	if bootstrap.Key == nil {
		bootstrap.Key = make([]byte, keySize)
		if _, err := io.ReadFull(r.random, bootstrap.Key); err != nil {
			return fmt.Errorf("generate a key for JoinToken %s: %w", t.token.Name, err)
		}
	}
	joinYAML, err := bootstrap.Marshal()
	if err != nil {
		return err
	}
	values, err := valuesFor(&bootstrap, t.token.Spec.ClusterID)
	if err != nil {
		return err
	}
	write := r.client.Update
	if t.secret == nil {
		t.secret = secretOf(t.token)
		write = func(ctx context.Context, secret client.Object, _ ...client.UpdateOption) error {
			return r.client.Create(ctx, secret)
		}
	}
	t.issuer.describe(&t.credential)
	t.credential.Usable, t.credential.IssuedAt, t.credential.Lifetime = true, t.seenAt, granted
	t.credential.Incomplete = false
	fill(t.secret, joinYAML, values, t.credential, t.issuer.uid())
	if err := write(ctx, t.secret); err != nil {
		return fmt.Errorf("write Secret %s: %w", t.secret.Name, err)
	}
	return nil
}

// complete writes the chart values for the credential in the Secret, without changing the credential. Secrets of
// earlier versions have no chart values.
func (r *reconciler) complete(ctx context.Context, t *assets) error {
	t.secret.Data[registration.ValuesKey] = t.values
	if err := r.client.Update(ctx, t.secret); err != nil {
		return fmt.Errorf("write key %s of Secret %s: %w", registration.ValuesKey, t.secret.Name, err)
	}
	t.credential.Incomplete = false
	return nil
}

func (r *reconciler) bind(ctx context.Context, t *assets, want *rbacv1.RoleBinding) error {
	if t.binding != nil { // Its role cannot be changed.
		if err := client.IgnoreNotFound(
			r.client.Delete(ctx, t.binding, precondition.Unchanged(t.binding))); err != nil {
			return fmt.Errorf("delete RoleBinding %s, which another client has changed: %w", t.binding.Name, err)
		}
	}
	t.binding = want
	if err := r.client.Create(ctx, t.binding); err != nil {
		return fmt.Errorf("create RoleBinding %s: %w", t.binding.Name, err)
	}
	return nil
}

// withdraw removes the credential from the Secret. Copies work until the given time. Zero: until they expire.
func (r *reconciler) withdraw(ctx context.Context, t *assets, until time.Time) error {
	if err := r.removeCredential(ctx, t); err != nil {
		return err
	}
	return t.issuer.withdraw(ctx, until)
}

func (r *reconciler) removeCredential(ctx context.Context, t *assets) error {
	if t.secret == nil || !empty(t.secret) {
		return nil
	}
	if err := r.client.Update(ctx, t.secret); err != nil {
		return fmt.Errorf("remove the credential from Secret %s: %w", t.secret.Name, err)
	}
	return nil
}

func (r *reconciler) remove(ctx context.Context, t *assets) error {
	if err := r.removeCredential(ctx, t); err != nil {
		return err
	}
	if err := t.issuer.remove(ctx); err != nil {
		return err
	}
	if t.binding != nil {
		if err := client.IgnoreNotFound(
			r.client.Delete(ctx, t.binding, precondition.Unchanged(t.binding))); err != nil {
			return fmt.Errorf("delete RoleBinding %s: %w", t.binding.Name, err)
		}
	}
	return nil
}

func secretOf(token *v1alpha1.JoinToken) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metaOf(token, token.Name)}
}

func bindingOf(token *v1alpha1.JoinToken, subject rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metaOf(token, "join-"+token.Name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: membership.BootstrapClusterRole},
		Subjects:   []rbacv1.Subject{subject},
	}
}

func bound(binding, want *rbacv1.RoleBinding) bool {
	return binding != nil && binding.RoleRef == want.RoleRef &&
		equality.Semantic.DeepEqual(binding.Subjects, want.Subjects)
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
