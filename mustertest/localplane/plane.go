package localplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"
)

// Options say what plane to start. The zero value is a plane without nodes.
type Options struct {
	// Name tells planes apart in folder names, in errors and in the names of their authorities.
	// Default "plane".
	Name string

	// Nodes is the number of nodes, named node-0, node-1 and so on. With one or more, kube-scheduler and kwok run
	// as well: pods are bound and become ready at once, though nothing is executed. Default 0.
	Nodes int

	// NodeCapacity is what each node has and offers. Default 8 CPUs, 32Gi of memory and 110 pods.
	NodeCapacity corev1.ResourceList

	// Prepare is called with the plane's Config once its API server is ready, before any controller starts; the plane does
	// not start if it fails. The garbage collector knows the CustomResourceDefinitions that it installs, while of others
	// it learns only when it looks for new kinds, which is twice a minute. It may be called again, with another plane,
	// where a start is tried anew. Default: nothing is done.
	Prepare func(ctx context.Context, config *rest.Config) error

	// NoSigner leaves out the controller that signs certificates, as on control planes whose clients do not authenticate
	// by any. Default: it runs.
	NoSigner bool

	// LogDir keeps the logs of the components, one file each; it is created when missing. Default: they are in the
	// plane's folder and vanish with it.
	LogDir string

	// Dir is the folder in which the plane's own folder is made. Default os.TempDir().
	Dir string

	// Progress is told when binaries have to be built first, which takes minutes. Default: the
	// terminal, if there is one, else os.Stderr.
	Progress io.Writer
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "plane"
	}
	if o.NodeCapacity == nil {
		o.NodeCapacity = corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("8"),
			corev1.ResourceMemory: resource.MustParse("32Gi"),
			corev1.ResourcePods:   resource.MustParse("110"),
		}
	}
	if o.Dir == "" {
		o.Dir = os.TempDir()
	}
	return o
}

// A Plane is a running Kubernetes control plane. Its methods may be called concurrently.
type Plane struct {
	name       string
	opts       Options
	folder     string
	logs       string
	assets     string
	kubeconfig string
	ca         *authority
	admin      *rest.Config
	watchdog   *watchdog
	etcdPort   int
	apiPort    int

	stopping context.Context // ends when Stop is called
	stop     context.CancelFunc

	mu          sync.Mutex
	stopped     bool
	stopErr     error
	etcd        *process            // nil after a failed Restore
	apiServer   *process            // nil while it is killed
	controllers map[string]*process // the clients of the API server
}

// startAttempts bounds how often Start tries anew because another process took a port that had been free.
const startAttempts = 3

// Start starts a control plane and waits until it is of use: the API server is ready, namespaces get their default
// ServiceAccount and the nodes take pods. On error nothing is left behind, and the error has the
// end of the log of the component that is to blame. The context bounds the start only; end the
// plane by Stop.
func Start(ctx context.Context, opts Options) (*Plane, error) {
	opts = opts.withDefaults()
	assets, err := Binaries(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("start plane %s: %w", opts.Name, err)
	}
	for attempt := 1; ; attempt++ {
		p, err := start(ctx, opts, assets)
		if err == nil {
			return p, nil
		}
		if _, taken := errors.AsType[*portTakenError](err); !taken || attempt == startAttempts {
			return nil, fmt.Errorf("start plane %s: %w", opts.Name, err)
		}
	}
}

func start(ctx context.Context, opts Options, assets string) (_ *Plane, err error) {
	p := &Plane{name: opts.Name, opts: opts, assets: assets, controllers: map[string]*process{}}
	p.stopping, p.stop = context.WithCancel(context.Background())
	parent, err := filepath.Abs(opts.Dir) // Components run in the plane's folder.
	if err != nil {
		return nil, fmt.Errorf("find the folder for its folder: %w", err)
	}
	if p.folder, err = os.MkdirTemp(parent, "muster-"+opts.Name+"-"); err != nil {
		return nil, fmt.Errorf("make its folder: %w", err)
	}
	if p.watchdog, err = startWatchdog(p.folder); err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.folder))
	}
	defer func() {
		if err != nil {
			_ = p.Stop() // Its error would only repeat which component is not there.
		}
	}()
	p.logs = filepath.Join(p.folder, "logs")
	if opts.LogDir != "" {
		if p.logs, err = filepath.Abs(opts.LogDir); err != nil {
			return nil, fmt.Errorf("find the log folder: %w", err)
		}
	}
	if err := os.MkdirAll(p.logs, 0o755); err != nil {
		return nil, fmt.Errorf("make the log folder: %w", err)
	}
	if p.etcdPort, err = takePort(); err != nil {
		return nil, err
	}
	if p.apiPort, err = takePort(); err != nil {
		return nil, err
	}
	if err := p.prepare(); err != nil {
		return nil, err
	}
	if err := p.startComponents(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// Config returns how to reach the API server as admin (group system:masters), without a client-side rate
// limit. The caller owns the copy.
func (p *Plane) Config() *rest.Config { return rest.CopyConfig(p.admin) }

// Kubeconfig returns the path of a kubeconfig file with what Config returns. Its mode is 0600; it is gone
// after Stop.
func (p *Plane) Kubeconfig() string { return p.kubeconfig }

// User returns how to reach the API server as a user that is in the given groups and in
// system:authenticated, by a client certificate. RBAC applies: a user without bindings may do next
// to nothing. It panics if a name is not valid UTF-8, since no certificate can hold it.
func (p *Plane) User(name string, groups ...string) *rest.Config {
	cfg, err := p.user(name, groups...)
	if err != nil {
		panic(fmt.Sprintf("localplane: %v", err))
	}
	return cfg
}

func (p *Plane) user(name string, groups ...string) (*rest.Config, error) {
	pair, err := p.ca.client(name, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: "https://" + loopback(p.apiPort),
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   p.ca.cert,
			CertData: pair.cert,
			KeyData:  pair.key,
		},
		QPS: -1,
	}, nil
}

// termPatience is how long each tier of components may take to end by itself.
const termPatience = 2 * time.Second

// Stop ends the plane and removes its folder. It takes a few seconds at most, may be called more
// than once and always returns what the first call did: an error if something could not be removed, or
// if a component had ended by itself before.
func (p *Plane) Stop() error {
	p.stop() // A start of the API server that goes on would hold the lock.
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return p.stopErr
	}
	p.stopped = true

	// From the outside in, so that nobody's server goes away under them.
	errs := stopAll(slices.Collect(maps.Values(p.controllers))...)
	errs = errors.Join(errs, stopAll(p.apiServer), stopAll(p.etcd), p.watchdog.close())
	releasePorts(p.etcdPort, p.apiPort)
	if errs != nil {
		p.stopErr = fmt.Errorf("stop plane %s: %w", p.name, errs)
	}
	return p.stopErr
}

func stopAll(processes ...*process) error {
	errs := make([]error, len(processes))
	var wg sync.WaitGroup
	for i, process := range processes {
		if process != nil {
			wg.Go(func() { errs[i] = process.stop(termPatience) })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}
