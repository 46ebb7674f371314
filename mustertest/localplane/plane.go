package localplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"
)

// Options are the options of a plane. The zero value is a plane without nodes.
type Options struct {
	// Name identifies the plane in folder names, in errors and in the names of its certificate authorities. Default:
	// "plane".
	Name string

	// Nodes is the number of nodes, named node-0, node-1 and so on. With at least one node, kube-scheduler and kwok also
	// run: pods are bound and become ready immediately, although no containers run. Default 0.
	Nodes int

	// NodeCapacity is the capacity of each node. Default: 8 CPUs, 32Gi of memory and 110 pods.
	NodeCapacity corev1.ResourceList

	// Prepare is called with the plane's Config when its API server is ready, before any controller starts. If Prepare
	// fails, the plane does not start. The garbage collector immediately knows the CustomResourceDefinitions that Prepare
	// installs; it discovers others twice a minute. If the start is repeated, Prepare is called again with another plane.
	// Default: none.
	Prepare func(ctx context.Context, config *rest.Config) error

	// NoSigner omits the controller that signs certificates, as on control planes whose clients do not use certificates.
	// Default: the controller runs.
	NoSigner bool

	// LogDir is a folder for the logs of the components, one file each. It is created if it does not exist. Default: the
	// logs are in the plane's folder and are removed with it.
	LogDir string

	// Dir is the folder in which the plane's folder is created. Default: os.TempDir().
	Dir string

	// Progress receives messages while binaries are built, which takes minutes. Default: the terminal if there is one,
	// otherwise os.Stderr.
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
	opts     Options // with defaults
	files    files
	ports    planePorts
	ca       *authority
	admin    *rest.Config
	watchdog *watchdog

	stopping context.Context // ends when Stop is called
	stop     context.CancelFunc

	mu      sync.Mutex
	stopped bool
	stopErr error
	running components
}

// files are the folders that a plane uses.
type files struct {
	folder string // of the plane
	logs   string
	assets string // contains the programs
}

// planePorts are the ports on which a plane listens.
type planePorts struct{ etcd, apiServer int }

// startAttempts limits the attempts of Start. Start retries if another process took a port that had been free, or if a
// component panicked.
const startAttempts = 3

// Start starts a control plane and waits until it can be used: the API server is ready, namespaces get their default
// ServiceAccount, and pods can be scheduled on the nodes. After an error nothing remains, and the error contains the
// end of the log of the component that failed. The context limits only the start; use Stop to end the plane.
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
		if _, transient := errors.AsType[*transientError](err); !transient || attempt == startAttempts {
			return nil, fmt.Errorf("start plane %s: %w", opts.Name, err)
		}
	}
}

func start(ctx context.Context, opts Options, assets string) (_ *Plane, err error) {
	p := &Plane{opts: opts, files: files{assets: assets}, running: components{controllers: map[string]*process{}}}
	p.stopping, p.stop = context.WithCancel(context.Background())
	parent, err := filepath.Abs(opts.Dir) // Components run in the plane's folder.
	if err != nil {
		return nil, fmt.Errorf("find the folder for its folder: %w", err)
	}
	if p.files.folder, err = os.MkdirTemp(parent, "muster-"+opts.Name+"-"); err != nil {
		return nil, fmt.Errorf("make its folder: %w", err)
	}
	if p.watchdog, err = startWatchdog(p.files.folder); err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.files.folder))
	}
	defer func() {
		if err != nil {
			_ = p.Stop() // Its error would only repeat which component is not running.
		}
	}()
	p.files.logs = filepath.Join(p.files.folder, "logs")
	if opts.LogDir != "" {
		if p.files.logs, err = filepath.Abs(opts.LogDir); err != nil {
			return nil, fmt.Errorf("find the log folder: %w", err)
		}
	}
	if err := os.MkdirAll(p.files.logs, 0o755); err != nil {
		return nil, fmt.Errorf("make the log folder: %w", err)
	}
	if p.ports.etcd, err = takePort(); err != nil {
		return nil, err
	}
	if p.ports.apiServer, err = takePort(); err != nil {
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

// Config returns a config for the API server with the permissions of an administrator (group system:masters), without a
// client-side rate limit. The caller may modify it.
func (p *Plane) Config() *rest.Config { return rest.CopyConfig(p.admin) }

// Kubeconfig returns the path of a kubeconfig file with the content of Config. Its mode is 0600. Stop removes it.
func (p *Plane) Kubeconfig() string { return p.path("kubeconfig") }

// User returns a config for the API server as a user in these groups and in system:authenticated, with a client
// certificate. RBAC applies: a user without bindings has almost no permissions. User panics if a name is not valid
// UTF-8, because a certificate cannot contain it.
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
		Host: "https://" + loopback(p.ports.apiServer),
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   p.ca.cert,
			CertData: pair.cert,
			KeyData:  pair.key,
		},
		QPS: -1,
	}, nil
}

// Stop ends the plane and removes its folder. It takes at most a few seconds. It may be called more than once, and
// always returns the result of the first call: an error if a file could not be removed, or if a component had ended
// before.
func (p *Plane) Stop() error {
	p.stop() // Otherwise a running start of the API server would keep the lock.
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return p.stopErr
	}
	p.stopped = true

	errs := errors.Join(p.running.stop(), p.watchdog.close())
	releasePorts(p.ports.etcd, p.ports.apiServer)
	if errs != nil {
		p.stopErr = fmt.Errorf("stop plane %s: %w", p.opts.Name, errs)
	}
	return p.stopErr
}
