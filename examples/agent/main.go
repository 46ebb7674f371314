// Command agent is a complete agent program: it makes the cluster in which it runs a member of a hub, and applies Works
// there. The manifests of package deploy run it:
//
//	kubectl apply -k deploy/agent/overlays/singleton     # with an image of this program
//	kubectl -n muster-system create secret generic muster-bootstrap --from-file=join.yaml
//
// Without --works, it is a membership agent only. With --member-kubeconfig it runs outside of its member. The objects
// of add-ons arrive as Works too. A product has its own version of this program, with its own collectors, cleaners and
// companions.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/csr"
	"github.com/muster-sdk/muster/membership/registration/identity"
	"github.com/muster-sdk/muster/membership/registration/token"
)

type flags struct {
	name, clusterID, namespace, member, probes, metrics string
	hubs                                                hubNames
	labels                                              labels
	works                                               bool
	method                                              string
	keepBootstrap                                       bool
	connection                                          connection
}

// connection has the settings of the connection to the hub that differ from the defaults.
type connection struct {
	proxyURL, kubeconfig string
	writesPerSecond      int
}

// methods maps the values of --method to registration methods.
var methods = map[string]registration.Method{
	"token": token.Method{}, "csr": csr.Method{}, "identity": identity.Method{},
}

// hubNames is a flag that may be repeated.
type hubNames []string

func (h *hubNames) String() string { return strings.Join(*h, ",") }

// Set adds a hub.
func (h *hubNames) Set(name string) error {
	*h = append(*h, name)
	return nil
}

// labels is a flag that may be repeated, with one label each time.
type labels map[string]string

func (l labels) String() string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(l)) {
		out = append(out, key+"="+l[key])
	}
	return strings.Join(out, ",")
}

// Set adds a label.
func (l labels) Set(label string) error {
	key, value, found := strings.Cut(label, "=")
	if !found || key == "" {
		return fmt.Errorf("label must be KEY=VALUE, got %q", label)
	}
	if before, exists := l[key]; exists && before != value {
		return fmt.Errorf("label %q is set to %q and to %q", key, before, value)
	}
	l[key] = value
	return nil
}

func parse(args []string) (flags, error) {
	f := flags{labels: labels{}}
	set := flag.NewFlagSet("agent", flag.ContinueOnError)
	set.StringVar(&f.name, "name", "", "name that the member would like to have; the hub has the say")
	set.StringVar(&f.clusterID, "cluster-id", "", "what tells the cluster from all others; without it the UID of the "+
		"member's namespace kube-system")
	set.StringVar(&f.namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"namespace of the agent's Secrets; without it POD_NAMESPACE, or "+agent.DefaultNamespace)
	set.StringVar(&f.member, "member-kubeconfig", "",
		"kubeconfig of the member; without it that is the cluster that the agent runs in")
	set.Var(&f.hubs, "hub", "name of a hub, whose Secrets are muster-bootstrap-NAME and muster-agent-NAME, and whose "+
		"Lease is muster-agent-NAME: the agent's Roles have to\n"+
		"allow those then. Several are taken in their order, one at a time, with the Lease of the first. To be in several "+
		"at once, run an agent\n"+
		"for each. Without it there is one, which has no name")
	set.Var(f.labels, "label", "label KEY=VALUE that the agent requests for its MemberCluster; "+
		"labels of the JoinToken take precedence. Repeatable")
	set.BoolVar(&f.works, "works", false, "apply Works; the definition of AppliedWork has to be on the member")
	set.StringVar(&f.method, "method", "token", "how the agent gets its credential: token, csr (a client certificate) "+
		"or identity (its own credential for the hub, which spec.identity of the MemberCluster names)")
	set.BoolVar(&f.keepBootstrap, "keep-bootstrap", false, "keep the bootstrap credential after the cluster has joined, "+
		"so that the agent can register again by itself while the JoinToken is valid")
	set.StringVar(&f.connection.proxyURL, "proxy-url", "", "proxy for connections to the hub, "+
		"such as http://proxy.example.com:3128; without it HTTPS_PROXY")
	set.StringVar(&f.connection.kubeconfig, "hub-kubeconfig", "", "kubeconfig with the agent's own credential for the "+
		"hub, for --method identity; its address is not used")
	set.IntVar(&f.connection.writesPerSecond, "hub-writes-per-second", agent.DefaultHubWritesPerSecond,
		"limit of writes to the hub; heartbeats have none. Negative: no limit")
	set.StringVar(&f.probes, "health-probe-bind-address", "0", "where to serve /healthz and /readyz; 0: nowhere")
	set.StringVar(&f.metrics, "metrics-bind-address", "0", "where to serve metrics; 0: nowhere")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	if set.NArg() > 0 {
		return f, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if methods[f.method] == nil {
		return f, fmt.Errorf("--method must be token, csr or identity, got %q", f.method)
	}
	if f.connection.kubeconfig != "" && f.method != "identity" {
		return f, errors.New("--hub-kubeconfig requires --method identity")
	}
	if address := f.connection.proxyURL; address != "" {
		if proxy, err := url.Parse(address); err != nil || proxy.Scheme == "" || proxy.Host == "" {
			return f, fmt.Errorf("--proxy-url must be a URL such as http://proxy.example.com:3128, got %q", address)
		}
	}
	if f.namespace == "" {
		f.namespace = agent.DefaultNamespace
	}
	return f, nil
}

func main() {
	f, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(2)
	}
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() { <-ctx.Done(); stop() }() // a second signal ends the program immediately
	home, err := ctrl.GetConfig()
	if err == nil {
		err = run(ctx, home, f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

// election returns the name of the leader election of the agents of one hub.
func (f flags) election() string {
	if len(f.hubs) == 0 {
		return agent.DefaultStoreSecret
	}
	return agent.DefaultStoreSecret + "-" + f.hubs[0]
}

// untilOut returns a function that observes the steps of the agent and calls done when the agent has left all hubs for
// good. Hubs is the number of named hubs. With several hubs, an agent that has left one of them continues with the next
// one.
func untilOut(hubs int, done func()) func(lifecycle.AgentStep) {
	out := map[string]bool{}
	return func(step lifecycle.AgentStep) {
		var hub string // the message begins with the name of the hub
		if hubs > 1 {
			hub, _, _ = strings.Cut(step.Message, ":")
		}
		if delete(out, hub); step.Done {
			out[hub] = true
		}
		if len(out) == max(1, hubs) {
			done()
		}
	}
}

func (f flags) options(member *rest.Config, onPhase func(lifecycle.AgentStep)) agent.Options {
	options := agent.Options{
		Name: f.name, ClusterID: f.clusterID, Namespace: f.namespace, Member: member, Version: "example", OnPhase: onPhase,
		Labels: f.labels, Method: methods[f.method], KeepBootstrap: f.keepBootstrap,
		HubWritesPerSecond: f.connection.writesPerSecond,
	}
	for _, name := range f.hubs {
		options.Hubs = append(options.Hubs, agent.HubOptions{Name: name})
	}
	return options
}

// hubConfig returns a function that sets the proxy and the agent's own credential in each config for the hub.
func (f flags) hubConfig() (func(*rest.Config), error) {
	own := &rest.Config{}
	if f.connection.kubeconfig != "" {
		var err error
		if own, err = clientcmd.BuildConfigFromFlags("", f.connection.kubeconfig); err != nil {
			return nil, fmt.Errorf("read the kubeconfig of the hub: %w", err)
		}
	}
	proxy := http.ProxyFromEnvironment
	if f.connection.proxyURL != "" {
		address, err := url.Parse(f.connection.proxyURL)
		if err != nil {
			return nil, err
		}
		proxy = http.ProxyURL(address)
	}
	return func(hub *rest.Config) {
		hub.Proxy = proxy
		hub.Username, hub.Password = own.Username, own.Password
		hub.BearerToken, hub.BearerTokenFile = own.BearerToken, own.BearerTokenFile
		hub.ExecProvider, hub.AuthProvider = own.ExecProvider, own.AuthProvider
		hub.CertData, hub.CertFile = own.CertData, own.CertFile
		hub.KeyData, hub.KeyFile = own.KeyData, own.KeyFile
	}, nil
}

// run runs the agent until ctx ends, or until the member has left for good. Kubernetes then restarts the program, which
// waits for another bootstrap credential.
func run(ctx context.Context, home *rest.Config, f flags) error {
	member := home
	if f.member != "" {
		var err error
		if member, err = clientcmd.BuildConfigFromFlags("", f.member); err != nil {
			return fmt.Errorf("read the member's kubeconfig: %w", err)
		}
	}
	ctx, done := context.WithCancel(ctx)
	defer done()
	mgr, err := manager.New(home, manager.Options{
		LeaderElection: true, LeaderElectionID: f.election(), LeaderElectionNamespace: f.namespace,
		LeaderElectionReleaseOnCancel: true,
		HealthProbeBindAddress:        f.probes, Metrics: metricsserver.Options{BindAddress: f.metrics},
	})
	if err != nil {
		return err
	}
	options := assembly.AgentOptions{Membership: f.options(member, untilOut(len(f.hubs), done)), WithoutWorks: !f.works}
	if options.Membership.HubConfig, err = f.hubConfig(); err != nil {
		return err
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping),
		assembly.SetupAgent(ctx, mgr, options)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
