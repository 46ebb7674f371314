package apiserver_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/apiserver"
)

// bubble runs a test in virtual time. All goroutines must have ended when it returns.
func bubble(t *testing.T, test func(t *testing.T, ctx context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		test(t, ctx)
	})
}

func inBubble(t *testing.T, name string) *apiserver.Server {
	t.Helper()
	s, err := apiserver.New(apiserver.Options{Name: name})
	require.NoError(t, err)
	return s
}

// until polls a condition in virtual time, for ten minutes at most.
func until(t *testing.T, expected string, done func() bool) {
	t.Helper()
	for range 6000 {
		if done() {
			return
		}
		<-time.After(100 * time.Millisecond) // virtual time
	}
	t.Fatalf("%s: not within ten virtual minutes", expected)
}

func newManager(t *testing.T, cfg *rest.Config, scheme *runtime.Scheme, elect bool) manager.Manager {
	t.Helper()
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller:     config.Controller{SkipNameValidation: new(true)},
		LeaderElection: elect, LeaderElectionID: "test", LeaderElectionNamespace: "default",
		LeaderElectionReleaseOnCancel: elect,
	})
	require.NoError(t, err)
	return mgr
}

// run starts a manager. The returned function stops the manager and waits for its end.
func run(t *testing.T, ctx context.Context, mgr manager.Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

// TestBubble_UnhandledErrorDoesNotSleep checks that the handlers of errors that client-go cannot return, such as those
// of watches, do not sleep.
func TestBubble_UnhandledErrorDoesNotSleep(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		began := time.Now()
		utilruntime.HandleErrorWithContext(ctx, errors.New("of a watch"), "This line is part of a test")
		require.Less(t, time.Since(began), time.Second)
	})
}

// TestBubble_ManagerWithLeaderElection runs a manager with leader election and informers for a virtual hour. No
// goroutine remains afterwards.
func TestBubble_ManagerWithLeaderElection(t *testing.T) {
	began := time.Now()
	bubble(t, func(t *testing.T, ctx context.Context) {
		s := inBubble(t, "hub")
		defer s.Close()
		mgr := newManager(t, s.Admin(), clientgoscheme.Scheme, true)
		c := mgr.GetClient()
		err := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func(func(ctx context.Context,
			r reconcile.Request) (reconcile.Result, error) {
			var cm corev1.ConfigMap
			if err := c.Get(ctx, r.NamespacedName, &cm); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			if cm.Data["seen"] != "" || cm.Name == "kube-root-ca.crt" {
				return reconcile.Result{}, nil
			}
			cm.Data = map[string]string{"seen": "yes"}
			return reconcile.Result{}, c.Update(ctx, &cm)
		}))
		require.NoError(t, err)
		stop := run(t, ctx, mgr)
		admin, err := client.New(s.Admin(), client.Options{})
		require.NoError(t, err)
		for i := range 3 {
			require.NoError(t, admin.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default",
				Name: fmt.Sprint("m", i)}}))
			until(t, "ConfigMap is reconciled", func() bool {
				var cm corev1.ConfigMap
				require.NoError(t, admin.Get(ctx, client.ObjectKey{Namespace: "default", Name: fmt.Sprint("m", i)}, &cm))
				return cm.Data["seen"] == "yes"
			})
			<-time.After(20 * time.Minute) // virtual
			s.Compact()
			s.DropWatches()
		}
		var lease coordinationv1.Lease
		require.NoError(t, admin.Get(ctx, client.ObjectKey{Namespace: "default", Name: "test"}, &lease))
		require.NotEmpty(t, *lease.Spec.HolderIdentity)
		stop()
	})
	t.Logf("an hour took %s", time.Since(began))
}

// TestBubble_HubWithThreeMembers runs a hub with three members. Their agents join, send heartbeats for ten virtual
// minutes, and leave.
func TestBubble_HubWithThreeMembers(t *testing.T) {
	began := time.Now()
	bubble(t, func(t *testing.T, ctx context.Context) {
		s := inBubble(t, "hub")
		defer s.Close()
		scheme := mustertest.Scheme(v1alpha1.AddToScheme)
		admin, err := client.New(s.Admin(), client.Options{Scheme: scheme})
		require.NoError(t, err)
		require.NoError(t, crds.Install(ctx, admin))
		require.NoError(t,
			admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.RegistrationNamespace}}))
		require.NoError(t, mustertest.GrantFiles(ctx, admin, "muster-hub", "../../membership/hub/rbac/role.yaml"))
		mgr := newManager(t, s.Config("muster-hub"), scheme, false)
		require.NoError(t, hub.SetupWithManager(mgr, hub.Options{Server: s.URL(), CA: s.CertificateAuthority()}))
		stopHub := run(t, ctx, mgr)

		token := &v1alpha1.JoinToken{
			ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: "t"},
			Spec:       v1alpha1.JoinTokenSpec{AutoAccept: true},
		}
		require.NoError(t, admin.Create(ctx, token))
		var bootstrap *registration.Bootstrap
		until(t, "JoinToken has a credential", func() bool {
			var secret corev1.Secret
			if admin.Get(ctx, client.ObjectKeyFromObject(token), &secret) != nil {
				return false
			}
			bootstrap, err = registration.ParseBootstrap(secret.Data[registration.BootstrapKey])
			return err == nil
		})
		var stops []func()
		for i := range 3 {
			name := fmt.Sprint("m", i)
			member := inBubble(t, name)
			defer member.Close()
			memberClient, err := client.New(member.Admin(), client.Options{})
			require.NoError(t, err)
			require.NoError(t,
				memberClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agent.DefaultNamespace}}))
			memberManager := newManager(t, member.Admin(), scheme, false)
			require.NoError(t, agent.SetupWithManager(memberManager, agent.Options{
				Name: name, Bootstrap: agent.BootstrapFunc(func(context.Context) (*registration.Bootstrap, error) {
					return bootstrap, nil
				}),
				HubConfig: func(c *rest.Config) { c.Dial = s.DialContext },
				OnPhase:   func(step lifecycle.AgentStep) { t.Logf("%s: %+v", name, step) },
			}))
			stops = append(stops, run(t, ctx, memberManager))
		}
		healthy := func() bool {
			var members v1alpha1.MemberClusterList
			require.NoError(t, admin.List(ctx, &members))
			n := 0
			for _, member := range members.Items {
				if meta.IsStatusConditionTrue(member.Status.Conditions, v1alpha1.ConditionHealthy) {
					n++
				}
			}
			return n == 3
		}
		until(t, "three members are healthy", healthy)
		<-time.After(10 * time.Minute) // virtual
		require.True(t, healthy())
		for _, stop := range stops {
			stop()
		}
		stopHub()
	})
	t.Logf("ten minutes of a hub with three members took %s", time.Since(began))
}
