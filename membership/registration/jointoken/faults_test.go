package jointoken

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

var errKilled = errors.New("killed")

// killedAfter returns a client whose program is killed after a number of writes: the last write succeeds without a
// response, and no request follows.
func killedAfter(inner client.WithWatch, writes int) client.Client {
	write := func(do func() error) error {
		if writes <= 0 {
			return errKilled
		}
		if writes--; writes == 0 {
			return errors.Join(do(), errKilled)
		}
		return do()
	}
	return interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return write(func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return write(func() error { return c.Update(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return write(func() error { return c.Delete(ctx, o, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, s client.Object,
			opts ...client.SubResourceCreateOption) error {
			return write(func() error { return c.SubResource(sub).Create(ctx, o, s, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			return write(func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
}

// TestReconcile_RestartAfterEachWrite checks that a controller continues after an earlier one was killed after any of
// its writes.
func TestReconcile_RestartAfterEachWrite(t *testing.T) {
	testkit.Virtual(t, testReconcileRestartAfterEachWrite)
}

func testReconcileRestartAfterEachWrite(t *testing.T) {
	h := newHubWithoutController(t, inMemory(t))
	shared, err := HubFor(h.Config, Options{Namespace: namespace})
	require.NoError(t, err)
	recorder := events.NewFakeRecorder(1000)
	reconcile := func(c client.Client, token *v1alpha1.JoinToken) error {
		r := &reconciler{reader: h.Client, client: c, recorder: recorder, clock: h.clock, random: rand.Reader, hub: shared,
			bootstrapTokens: true}
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(token)})
		return err
	}
	// killed runs the controller repeatedly, kills it after one write, two writes and so on, until Reconcile succeeds.
	killed := func(operation string, token *v1alpha1.JoinToken) {
		t.Helper()
		for writes := 1; ; writes++ {
			require.Less(t, writes, 10, operation)
			if err := reconcile(killedAfter(h.Client, writes), token); err == nil {
				return
			}
		}
	}
	for writes := 1; writes <= 6; writes++ {
		token := h.token(fmt.Sprintf("killed-%d", writes), v1alpha1.JoinTokenSpec{TTLSeconds: ptr.To[int64](3600)})
		err := reconcile(killedAfter(h.Client, writes), token)
		require.Equal(t, writes <= 5, err != nil, "want five writes (ServiceAccount, RoleBinding, token, Secret, status): %v",
			err)
		require.NoError(t, reconcile(h.Client, token))
		h.waitFor(token, v1alpha1.ReasonReady)
		require.Len(t, h.ownedBy(token), 3)
		require.True(t, h.credentialWorks(h.bootstrap(token)))
	}

	token := h.token("killed-all-the-time", v1alpha1.JoinTokenSpec{TTLSeconds: ptr.To[int64](3600)})
	killed("issue", token)
	h.waitFor(token, v1alpha1.ReasonReady)

	require.NoError(t, h.Client.Delete(t.Context(), h.account(token)))
	require.Error(t, reconcile(killedAfter(h.Client, 1), token),
		"the ServiceAccount is new, and the credential belongs to the old one")
	require.NoError(t, reconcile(h.Client, token))
	bootstrap := h.bootstrap(token)
	require.True(t, h.credentialWorks(bootstrap))

	h.clock.SetTime(token.Status.ExpirationTime.Time)
	killed("withdraw", token)
	h.waitFor(token, v1alpha1.ReasonExpired)
	require.True(t, h.credentialWorks(bootstrap))
	h.clock.SetTime(token.Status.ExpirationTime.Add(answerGrace))
	killed("remove", token)
	require.Equal(t, []string{"Secret/killed-all-the-time"}, h.ownedBy(token))
	require.Equal(t, bootstrap.Key, macKey(h.secret(token)))
}

func TestReconcile_RestartAfterEachWriteOfBootstrapToken(t *testing.T) {
	testkit.Virtual(t, testReconcileRestartAfterEachWriteOfBootstrapToken)
}

func testReconcileRestartAfterEachWriteOfBootstrapToken(t *testing.T) {
	h := newHubWithoutController(t, inMemory(t))
	shared, err := HubFor(h.Config, Options{Namespace: namespace})
	require.NoError(t, err)
	reconcile := func(c client.Client, token *v1alpha1.JoinToken) error {
		r := &reconciler{
			reader: h.Client, client: c, recorder: events.NewFakeRecorder(1000), clock: h.clock, random: rand.Reader,
			hub: shared, bootstrapTokens: true,
		}
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(token)})
		return err
	}
	// killed kills the controller after a number of writes, and reconciles again.
	killed := func(operation string, token *v1alpha1.JoinToken, writes int) {
		t.Helper()
		err := reconcile(killedAfter(h.Client, writes), token)
		require.ErrorIs(t, err, errKilled, operation)
		require.NoError(t, reconcile(h.Client, token), operation)
	}
	for writes := range 4 { // binding, token, Secret, status
		token := h.bootstrapToken(fmt.Sprintf("kill0%d", writes), expiresAfter(time.Hour))
		killed("issue", token, writes)
		h.waitFor(token, v1alpha1.ReasonReady)
		bootstrap := h.bootstrap(token)
		require.True(t, h.credentialWorks(bootstrap))
		require.Len(t, h.ownedBy(token), 2)

		start := h.clock.Now()
		h.clock.SetTime(token.Status.ExpirationTime.Time)
		if writes < 3 { // Secret, token, status
			killed("withdraw", token, writes)
		}
		require.NoError(t, reconcile(h.Client, token))
		h.waitFor(token, v1alpha1.ReasonExpired)
		require.True(t, h.credentialWorks(bootstrap))
		h.clock.SetTime(token.Status.ExpirationTime.Add(answerGrace))
		if writes < 2 { // token, binding
			killed("remove", token, writes)
		}
		require.NoError(t, reconcile(h.Client, token))
		require.Nil(t, h.systemSecret(token))
		require.Equal(t, []string{"Secret/" + token.Name}, h.ownedBy(token))
		h.clock.SetTime(start)
	}
}

// TestReconcile_FailureDoesNotProlongUsedUpToken checks that a failure delays neither the end of a token's copies nor
// the record of the time when it was used up.
func TestReconcile_FailureDoesNotProlongUsedUpToken(t *testing.T) {
	testkit.Virtual(t, testReconcileFailureDoesNotProlongUsedUpToken)
}

func testReconcileFailureDoesNotProlongUsedUpToken(t *testing.T) {
	h := newHubWithoutController(t, inMemory(t))
	shared, err := HubFor(h.Config, Options{Namespace: namespace})
	require.NoError(t, err)
	var broken bool
	c := interceptor.NewClient(h.Client, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if broken {
				return errors.New("the API server is not available")
			}
			return c.Update(ctx, o, opts...)
		},
	})
	r := &reconciler{reader: h.Client, client: c, recorder: events.NewFakeRecorder(10), clock: h.clock,
		random: rand.Reader, hub: shared}
	token := h.token("hiccups", v1alpha1.JoinTokenSpec{MaxUses: ptr.To[int32](1)})
	reconcile := func() error {
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(token)})
		return err
	}
	require.NoError(t, reconcile())
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(token), token))
	require.NoError(t, Count(t.Context(), h.Client, token, "east-id"))

	start := h.clock.Now()
	broken = true // from the first reconcile on
	require.Error(t, reconcile())
	broken = false
	h.clock.SetTime(start.Add(answerGrace / 2))
	require.NoError(t, reconcile())
	h.waitFor(token, v1alpha1.ReasonUsedUp)
	require.WithinDuration(t, start, token.Status.UsedUpTime.Time, time.Second)
	h.clock.SetTime(start.Add(answerGrace))
	require.NoError(t, reconcile())
	require.Equal(t, []string{"Secret/hiccups"}, h.ownedBy(token))
}

func TestReconcile_ReportsFailures(t *testing.T) { testkit.Virtual(t, testReconcileReportsFailures) }

func testReconcileReportsFailures(t *testing.T) {
	h := newHubWithoutController(t, inMemory(t))
	shared, err := HubFor(h.Config, Options{Namespace: namespace})
	require.NoError(t, err)
	broken := true
	c := interceptor.NewClient(h.Client, interceptor.Funcs{
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, s client.Object,
			opts ...client.SubResourceCreateOption) error {
			if broken {
				return errors.New("no keys to sign with")
			}
			return c.SubResource(sub).Create(ctx, o, s, opts...)
		},
	})
	recorder := events.NewFakeRecorder(10)
	r := &reconciler{reader: h.Client, client: c, recorder: recorder, clock: h.clock, random: rand.Reader, hub: shared}
	token := h.token("unlucky", v1alpha1.JoinTokenSpec{})
	for range 3 {
		_, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(token)})
		require.ErrorContains(t, err, "no keys to sign with", "Reconcile returns the error for a retry")
	}
	h.waitFor(token, v1alpha1.ReasonFailed)
	require.Equal(t, "issue a token of ServiceAccount join-unlucky: no keys to sign with",
		token.Status.Conditions[0].Message)
	require.Len(t, recorder.Events, 1, "an Event for each transition, not for each retry")
	broken = false
	_, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(token)})
	require.NoError(t, err)
	h.waitFor(token, v1alpha1.ReasonReady)
	require.Len(t, recorder.Events, 2)
}

// TestMaxUsesIsNeverExceeded checks that concurrent and repeated requests never exceed maxUses.
func TestMaxUsesIsNeverExceeded(t *testing.T) {
	h := newHub(t, onPlane(t))
	const most, clusters = 3, 8
	token := h.waitFor(h.token("rush", v1alpha1.JoinTokenSpec{MaxUses: ptr.To[int32](most)}), v1alpha1.ReasonReady)
	bootstrap := h.bootstrap(token)
	admitted := make([]atomic.Bool, clusters)
	var all sync.WaitGroup
	for n := range clusters {
		request, err := h.createRequest(bootstrap, fmt.Sprint("cluster-", n))
		require.NoError(t, err)
		for range 2 { // Like two replicas of a hub without leader election.
			all.Go(func() {
				for {
					token, err := Check(t.Context(), h.Client, request)
					if err == nil {
						err = Count(t.Context(), h.Client, token, request.Spec.ClusterID)
					}
					if apierrors.IsConflict(err) {
						continue
					}
					if err == nil {
						admitted[n].Store(true)
					} else if !errors.As(err, new(*membership.InvalidError)) {
						t.Error(err)
					}
					return
				}
			})
		}
	}
	all.Wait()
	count := 0
	for n := range admitted {
		if admitted[n].Load() {
			count++
		}
	}
	require.Equal(t, most, count)
	h.waitFor(token, v1alpha1.ReasonUsedUp)
	require.EqualValues(t, most, token.Status.Uses)
	require.Len(t, token.Status.UsedBy, most)
}

func TestCheck_InvalidProofs(t *testing.T) { testkit.Virtual(t, testCheckInvalidProofs) }

func testCheckInvalidProofs(t *testing.T) {
	h := newHub(t, inMemory(t))
	token := h.waitFor(h.token("checked", v1alpha1.JoinTokenSpec{}), v1alpha1.ReasonReady)
	autoAccept := h.waitFor(h.token("mightier", v1alpha1.JoinTokenSpec{AutoAccept: true}), v1alpha1.ReasonReady)
	bootstrap := h.bootstrap(token)
	for _, test := range []struct {
		reason string
		change func(*registration.Bootstrap)
		field  string
	}{
		{"the key of another token", func(b *registration.Bootstrap) {
			b.TokenName = autoAccept.Name
		}, "spec.token.mac"},
		{"a token that does not exist", func(b *registration.Bootstrap) {
			b.TokenName = "gone"
		}, "spec.token.name"},
		{"a guessed key", func(b *registration.Bootstrap) {
			b.Key = make([]byte, keySize)
		}, "spec.token.mac"},
	} {
		changed := *bootstrap
		test.change(&changed)
		request, err := h.createRequest(&changed, "east-id")
		require.NoError(t, err, "the API server does not verify the proof")
		_, err = Check(t.Context(), h.Client, request)
		invalid := new(membership.InvalidError)
		require.ErrorAsf(t, err, &invalid, "%s: %v", test.reason, err)
		require.Equal(t, test.field, invalid.Field, test.reason)
	}
	_, err := Check(t.Context(), h.Client, &v1alpha1.JoinRequest{})
	require.ErrorContains(t, err, "spec.token: ")

	// A JoinToken that was deleted and created again is another one, even while the Secret of its predecessor exists.
	request, err := h.createRequest(bootstrap, "east-id")
	require.NoError(t, err)
	old := h.secret(token)
	reader := interceptor.NewClient(h.Client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if secret, ok := o.(*corev1.Secret); ok {
				old.DeepCopyInto(secret)
				secret.OwnerReferences[0].UID = "predecessor"
			}
			return err
		},
	})
	_, err = Check(t.Context(), reader, request)
	require.ErrorContains(t, err, "does not belong")
	require.NotErrorAs(t, err, new(*membership.InvalidError), "the controller will create the new Secret")
}

func TestAcceptor(t *testing.T) { testkit.Virtual(t, testAcceptor) }

func testAcceptor(t *testing.T) {
	h := newHub(t, inMemory(t))
	h.token("auto", v1alpha1.JoinTokenSpec{AutoAccept: true})
	h.token("manual", v1alpha1.JoinTokenSpec{})
	for _, test := range []struct {
		reason string
		token  *v1alpha1.TokenProof
		want   membership.Decision
	}{
		{"a token with autoAccept", &v1alpha1.TokenProof{Name: "auto"}, membership.Accept},
		{"a token without autoAccept", &v1alpha1.TokenProof{Name: "manual"}, membership.Hold},
		{"a request without a token", nil, membership.Hold},
	} {
		request := &v1alpha1.JoinRequest{Spec: v1alpha1.JoinRequestSpec{Token: test.token}}
		request.Namespace = namespace
		acceptance, err := Acceptor{Reader: h.Client}.Accept(t.Context(), request)
		require.NoError(t, err, test.reason)
		require.Equal(t, test.want, acceptance.Decision, test.reason)
		// The hub reports that a request waits for an administrator. No additional reason is needed.
		require.Equal(t, test.want == membership.Accept, acceptance.Reason != "", test.reason)
	}
	request := &v1alpha1.JoinRequest{Spec: v1alpha1.JoinRequestSpec{Token: &v1alpha1.TokenProof{Name: "gone"}}}
	acceptance, err := Acceptor{Reader: h.Client}.Accept(t.Context(), request)
	require.Error(t, err)
	require.Equal(t, membership.Hold, acceptance.Decision, "an error must not accept a member")
}

// TestReconcile_SecretHasNewAddressOfHub checks that the Secret contains the new address when the hub moves.
func TestReconcile_SecretHasNewAddressOfHub(t *testing.T) {
	testkit.Virtual(t, testReconcileSecretHasNewAddressOfHub)
}

func testReconcileSecretHasNewAddressOfHub(t *testing.T) {
	h := newHub(t, inMemory(t))
	token := h.waitFor(h.token("moved", v1alpha1.JoinTokenSpec{}), v1alpha1.ReasonReady)
	before := h.bootstrap(token)
	h.stop()
	h.start(h.server.User("hub"), Options{Clock: h.clock, Server: "https://hub.example.com"})
	h.Holds("the Secret has the new address", func() bool {
		return h.bootstrap(token).Server == "https://hub.example.com"
	})
	require.Equal(t, before.Key, h.bootstrap(token).Key)
	require.Equal(t, before.CA, h.bootstrap(token).CA)
}

func TestHubFor_Options(t *testing.T) { testkit.Virtual(t, testHubForOptions) }

func testHubForOptions(t *testing.T) {
	good := inMemory(t).Config()
	for _, test := range []struct {
		reason  string
		config  func(*rest.Config)
		options Options
		want    string
	}{
		{"zero options with the config of the manager", func(*rest.Config) {}, Options{}, ""},
		{"no CA", func(c *rest.Config) { c.CAData = nil }, Options{}, "Options.CA"},
		{"a missing CA file", func(c *rest.Config) {
			c.CAData, c.CAFile = nil, "/nowhere/ca.crt"
		}, Options{}, "/nowhere/ca.crt"},
		{"an invalid CA", func(*rest.Config) {}, Options{CA: []byte("hello")}, "Options.CA"},
		{"a server with the http scheme", func(*rest.Config) {}, Options{Server: "http://hub"}, "Options.Server"},
		{"a server without a scheme", func(*rest.Config) {}, Options{Server: "hub"}, "Options.Server"},
	} {
		cfg := rest.CopyConfig(good)
		test.config(cfg)
		test.options.Namespace = namespace
		hub, err := HubFor(cfg, test.options)
		if test.want != "" {
			require.ErrorContains(t, err, test.want, test.reason)
			continue
		}
		require.NoError(t, err, test.reason)
		require.Equal(t, good.Host, hub.Server, test.reason)
	}
	bare, err := ctrl.NewManager(good, ctrl.Options{})
	require.NoError(t, err)
	require.ErrorContains(t, SetupWithManager(bare, Options{}), "AddToScheme")
}
