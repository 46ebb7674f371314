package attack

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/deploy"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/token"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/fleet"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

const timeout = 2 * time.Minute

var (
	hubPlane    = localplane.Shared{Options: localplane.Options{Name: "attacked"}}
	memberPlane = localplane.Shared{Options: localplane.Options{Name: "member"}}

	scheme = mustertest.Scheme(assembly.AddToScheme)
)

func TestMain(m *testing.M) { mustertest.Main(m, &hubPlane, &memberPlane) }

// scene is a complete hub with the shipped roles.
type scene struct {
	t     *testing.T
	plane *localplane.Plane
	admin client.Client
	hub   *fleet.Hub
}

// newScene starts a hub as the ServiceAccount of deploy/hub, with the permissions of its manifests and their components
// for tenants.
func newScene(t *testing.T, options assembly.HubOptions) *scene {
	t.Helper()
	s := &scene{t: t, plane: hubPlane.ForTest(t)}
	s.admin = mustertest.Client(t, s.plane.Config(), scheme, assembly.InstallHubDefinitions)
	objects, err := deploy.Hub("users-place", "select-anything", "push")
	require.NoError(t, err)
	for _, name := range []string{"muster-system", membership.RegistrationNamespace, membership.ConnectionNamespace} {
		s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, object := range objects {
		switch object.GetKind() {
		case "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
			s.create(object)
		}
	}
	options.SkipDefinitions = true
	user := s.plane.Config()
	user.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:muster-system:muster-hub",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:muster-system", "system:authenticated"}}
	s.hub = fleet.StartHub(t, s.plane.Config(), fleet.HubOptions{Assembly: options, Config: user})
	return s
}

// create creates objects that remain for other tests.
func (s *scene) create(objects ...client.Object) {
	s.t.Helper()
	for _, object := range objects {
		require.NoError(s.t, client.IgnoreAlreadyExists(s.admin.Create(s.t.Context(), object)))
	}
}

// createTemporary creates objects that are deleted when the test ends. It does not wait for the deletion.
func (s *scene) createTemporary(objects ...client.Object) {
	s.t.Helper()
	for _, object := range objects {
		require.NoError(s.t, s.admin.Create(s.t.Context(), object))
		s.t.Cleanup(func() { _ = s.admin.Delete(context.Background(), object) })
	}
}

// client returns a client with a configuration.
func (s *scene) client(config *rest.Config) client.Client {
	s.t.Helper()
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: s.admin.RESTMapper()})
	require.NoError(s.t, err)
	return c
}

// user returns a client of a user with roles, in a namespace or, without one, in the cluster.
func (s *scene) user(name, namespace string, roles ...string) client.Client {
	s.t.Helper()
	for _, role := range roles {
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
		subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
		at := metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + role}
		if namespace == "" {
			s.createTemporary(&rbacv1.ClusterRoleBinding{ObjectMeta: at, RoleRef: ref, Subjects: subjects})
		} else {
			s.createTemporary(&rbacv1.RoleBinding{ObjectMeta: at, RoleRef: ref, Subjects: subjects})
		}
	}
	config := s.plane.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	return s.client(config)
}

func (s *scene) eventually(expected string, check func() error) {
	s.t.Helper()
	mustertest.Eventually(s.t, timeout, expected, check)
}

// attempt is a request that an attacker sends.
type attempt func(context.Context, client.Client, ...client.CreateOption) error

// creation is the attempt to create an object.
func creation(object client.Object) attempt {
	return func(ctx context.Context, c client.Client, options ...client.CreateOption) error {
		return c.Create(ctx, object.DeepCopyObject().(client.Object), options...)
	}
}

// reading is the attempt to read an object that exists.
func reading(object client.Object) attempt {
	return func(ctx context.Context, c client.Client, _ ...client.CreateOption) error {
		return c.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
	}
}

// listing is the attempt to list objects; an empty namespace means all.
func listing(list client.ObjectList, namespace string) attempt {
	return func(ctx context.Context, c client.Client, _ ...client.CreateOption) error {
		return c.List(ctx, list.DeepCopyObject().(client.ObjectList), client.InNamespace(namespace))
	}
}

// changing is the attempt to change an object that exists, with a patch and with an update: a role can allow one of
// them alone.
func changing[T client.Object](object T, change func(T)) attempt {
	return func(ctx context.Context, c client.Client, options ...client.CreateOption) error {
		next := object.DeepCopyObject().(T)
		change(next)
		if len(options) > 0 {
			return c.Patch(ctx, next, client.MergeFrom(object), client.DryRunAll)
		}
		if err := c.Patch(ctx, next, client.MergeFrom(object)); !apierrors.IsForbidden(err) {
			return err
		}
		return c.Update(ctx, next)
	}
}

// changingStatus is changing for the status.
func changingStatus[T client.Object](object T, change func(T)) attempt {
	return func(ctx context.Context, c client.Client, options ...client.CreateOption) error {
		next := object.DeepCopyObject().(T)
		change(next)
		if len(options) > 0 {
			return c.Status().Patch(ctx, next, client.MergeFrom(object), client.DryRunAll)
		}
		if err := c.Status().Patch(ctx, next, client.MergeFrom(object)); !apierrors.IsForbidden(err) {
			return err
		}
		return c.Status().Update(ctx, next)
	}
}

// requireForbidden checks that the API server forbids each attempt of the attacker, and accepts the same request from
// an administrator: an attempt that is invalid for another reason proves nothing.
func (s *scene) requireForbidden(attacker client.Client, attempts map[string]attempt) {
	s.t.Helper()
	for action, try := range attempts {
		err := try(s.t.Context(), attacker)
		require.True(s.t, apierrors.IsForbidden(err), "%s: %v", action, err)
		require.NoError(s.t, client.IgnoreAlreadyExists(try(s.t.Context(), s.admin, client.DryRunAll)),
			"the administrator: %s", action)
	}
}

// token creates a JoinToken and returns its bootstrap credential.
func (s *scene) token(name string, spec v1alpha1.JoinTokenSpec) *registration.Bootstrap {
	s.t.Helper()
	object := &v1alpha1.JoinToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: name}, Spec: spec,
	}
	s.createTemporary(object)
	var bootstrap *registration.Bootstrap
	s.eventually("JoinToken "+name+" has a credential", func() (err error) {
		var secret corev1.Secret
		if err := s.admin.Get(s.t.Context(), client.ObjectKeyFromObject(object), &secret); err != nil {
			return err
		}
		if bootstrap, err = registration.ParseBootstrap(secret.Data[registration.BootstrapKey]); err != nil {
			return err
		}
		if err := s.admin.Get(s.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(object.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("%+v", object.Status.Conditions)
		}
		return nil
	})
	return bootstrap
}

// requester is a program with a bootstrap credential that sends a JoinRequest.
type requester struct {
	bootstrap *registration.Bootstrap
	client    client.Client
	claim     *registration.ClaimKey
	private   []byte
	request   *v1alpha1.JoinRequest
}

// newRequester returns a requester whose request is signed and not sent yet.
func (s *scene) newRequester(bootstrap *registration.Bootstrap, name, clusterID string,
	change ...func(*v1alpha1.JoinRequestSpec)) *requester {
	s.t.Helper()
	claim, err := registration.NewClaimKey()
	require.NoError(s.t, err)
	credential, private, err := token.Method{}.Request(claim, nil)
	require.NoError(s.t, err)
	request := &v1alpha1.JoinRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace},
		Spec:       v1alpha1.JoinRequestSpec{ClusterID: clusterID, Name: name, Credential: credential},
	}
	for _, c := range change {
		c(&request.Spec)
	}
	require.NoError(s.t, registration.Sign(request, claim, bootstrap))
	return &requester{bootstrap, s.client(bootstrap.RESTConfig()), claim, private, request}
}

// send creates the request. The API server counts requests in the status of a ResourceQuota, and reports conflicts.
func (s *scene) send(a *requester) error {
	for {
		err := a.client.Create(s.t.Context(), a.request.DeepCopy())
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}

// request sends the request and waits until its answer is one of answers.
func (s *scene) request(a *requester, answers ...v1alpha1.JoinAnswer) *v1alpha1.JoinRequest {
	s.t.Helper()
	require.NoError(s.t, client.IgnoreAlreadyExists(s.send(a)))
	return s.waitForAnswer(a, answers...)
}

// waitForAnswer waits until the answer to the request is one of answers.
func (s *scene) waitForAnswer(a *requester, answers ...v1alpha1.JoinAnswer) *v1alpha1.JoinRequest {
	s.t.Helper()
	s.t.Cleanup(func() { _ = s.admin.Delete(context.Background(), a.request) })
	got := &v1alpha1.JoinRequest{}
	s.eventually(fmt.Sprintf("the answer to the request of %s is one of %v", a.request.Spec.Name, answers), func() error {
		if err := s.admin.Get(s.t.Context(), client.ObjectKeyFromObject(a.request), got); err != nil {
			return err
		}
		for _, answer := range answers {
			if got.Status.Answer == answer && (answer != v1alpha1.AnswerHeld || len(got.Status.Conditions) > 0) {
				return nil
			}
		}
		return fmt.Errorf("the answer is %q: %+v", got.Status.Answer, got.Status.Conditions)
	})
	return got
}

// joinMember lets a member join, and returns a client with the credential of its agent.
func (s *scene) joinMember(name string) (agent client.Client, member *v1alpha1.MemberCluster) {
	s.t.Helper()
	a := s.newRequester(s.hub.Bootstrap(), name, "id-"+name)
	issued := s.request(a, v1alpha1.AnswerIssued)
	material, err := token.Method{}.Open(a.claim, a.private, *issued.Status.Credential)
	require.NoError(s.t, err)
	config, err := material.Config(a.bootstrap.RESTConfig(), a.claim)
	require.NoError(s.t, err)
	agent = s.client(config)
	s.t.Cleanup(func() { s.remove(name) })
	return agent, s.member(name)
}

func (s *scene) member(name string) *v1alpha1.MemberCluster {
	s.t.Helper()
	member := &v1alpha1.MemberCluster{}
	require.NoError(s.t, s.admin.Get(s.t.Context(), client.ObjectKey{Name: name}, member))
	return member
}

// remove deletes a MemberCluster whose agent cannot clean up. The hub of a later test completes the deletion.
func (s *scene) remove(name string) {
	member := &v1alpha1.MemberCluster{}
	ctx := context.Background()
	if s.admin.Get(ctx, client.ObjectKey{Name: name}, member) != nil {
		return
	}
	before := member.DeepCopy()
	member.Spec.Leave.DeadlineSeconds = 1
	_ = errors.Join(s.admin.Patch(ctx, member, client.MergeFrom(before)), s.admin.Delete(ctx, member))
}
