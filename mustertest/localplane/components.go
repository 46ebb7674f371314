package localplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// The names of the programs, as upstream has them.
const (
	etcdName              = "etcd"
	apiServerName         = "kube-apiserver"
	controllerManagerName = "kube-controller-manager"
	schedulerName         = "kube-scheduler"
	kwokName              = "kwok"
)

// etcdFolder has the data of etcd. It is in the folder of the plane.
const etcdFolder = "etcd"

// Client QPS of the controllers. Their defaults (20 to 50) would make tests of many objects wait for the
// client, not for what they test.
const controllerQPS, controllerBurst = "1000", "2000"

// promptNamespaces has kube-controller-manager, if it is built here, empty a namespace as soon as it is deleted.
// Kubernetes' pauses of 5 seconds for each namespace, and of 8 seconds for each finalizer, are for clusters with
// several API servers.
const promptNamespaces = "MUSTER_PROMPT_NAMESPACES=true"

// NamespaceDelayAnnotation on a namespace is a duration, such as "5s". When the namespace is deleted, its objects are
// deleted that much later. Kubernetes waits 5 seconds; a plane whose kube-controller-manager is built here waits 100 ms
// by default.
const NamespaceDelayAnnotation = "localplane.muster.dev/namespace-delay"

// startComponents starts everything and waits until it is ready.
func (p *Plane) startComponents(ctx context.Context) error {
	client, err := newPlaneClient(p.admin)
	if err != nil {
		return err
	}
	defer client.close()

	// The API server retries until etcd is there. What comes after gives up early if the API server is not.
	if p.running.etcd, err = p.run(etcdName, p.etcdArgs()); err != nil {
		return err
	}
	if p.running.apiServer, err = p.run(apiServerName, p.apiServerArgs()); err != nil {
		return err
	}
	if err := p.waitForAPIServer(ctx, client); err != nil {
		return err
	}
	if p.opts.Prepare != nil {
		if err := p.opts.Prepare(ctx, p.Config()); err != nil {
			return fmt.Errorf("prepare it: %w", err)
		}
	}
	if err := p.startControllers(); err != nil {
		return err
	}
	return p.waitForControllers(ctx, client)
}

// startControllers starts the clients of the API server.
func (p *Plane) startControllers() error {
	controllers := map[string][]string{controllerManagerName: p.controllerManagerArgs()}
	if p.opts.Nodes > 0 {
		controllers[schedulerName] = p.schedulerArgs()
		controllers[kwokName] = p.kwokArgs()
	}
	for program, args := range controllers {
		started, err := p.run(program, args)
		if err != nil {
			return err
		}
		p.running.controllers[program] = started
	}
	return nil
}

func (p *Plane) run(program string, args []string) (*process, error) {
	log := filepath.Join(p.files.logs, program+".log")
	return startProcess(p.watchdog, filepath.Join(p.files.assets, program), p.files.folder, log, args)
}

func (p *Plane) etcdArgs() []string {
	url := "https://" + loopback(p.ports.etcd)
	// A socket in the plane's folder: nobody ever calls the only member as a peer, so no port is spent on that.
	const peer = "unix://peer:0"
	return []string{
		"--name=default",
		"--data-dir=" + p.path(etcdFolder),
		"--listen-client-urls=" + url,
		"--advertise-client-urls=" + url,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		"--cert-file=" + p.path("etcd.crt"),
		"--key-file=" + p.path("etcd.key"),
		"--trusted-ca-file=" + p.path("etcd-ca.crt"),
		"--client-cert-auth",
		"--log-level=warn",
		// The data is thrown away with the plane; only a crash of the machine could lose it before.
		"--unsafe-no-fsync",
	}
}

func (p *Plane) apiServerArgs() []string {
	return []string{
		"--etcd-servers=https://" + loopback(p.ports.etcd),
		"--etcd-cafile=" + p.path("etcd-ca.crt"),
		"--etcd-certfile=" + p.path("etcd-client.crt"),
		"--etcd-keyfile=" + p.path("etcd-client.key"),
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(p.ports.apiServer),
		"--tls-cert-file=" + p.path("serving.crt"),
		"--tls-private-key-file=" + p.path("serving.key"),
		"--client-ca-file=" + p.path("ca.crt"),
		"--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.0.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + p.path("tokens.pub"),
		"--service-account-signing-key-file=" + p.path("tokens.key"),
		// Else tokens for pods would live a year whatever expiry was asked for.
		"--service-account-extend-token-expiration=false",
		"--enable-bootstrap-token-auth",
		// Without an address given, it looks for one that is not loopback, and fails on a machine that has none.
		// Loopback is not allowed in Endpoints, so it must not write those of the Service kubernetes.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--profiling=false",
	}
}

func (p *Plane) controllerManagerArgs() []string {
	// The two are off by default; kubeadm turns them on. They sign kube-public/cluster-info, and delete bootstrap tokens
	// that have expired.
	controllers := "*,bootstrap-signer-controller,token-cleaner-controller"
	if p.opts.NoSigner {
		controllers += ",-certificatesigningrequest-signing-controller"
	}
	return []string{
		"--kubeconfig=" + p.Kubeconfig(),
		"--leader-elect=false",
		"--secure-port=0",
		"--service-account-private-key-file=" + p.path("tokens.key"),
		"--root-ca-file=" + p.path("ca.crt"),
		"--cluster-signing-cert-file=" + p.path("ca.crt"),
		"--cluster-signing-key-file=" + p.path("ca.key"),
		"--controllers=" + controllers,
		"--kube-api-qps=" + controllerQPS,
		"--kube-api-burst=" + controllerBurst,
		"--profiling=false",
	}
}

func (p *Plane) schedulerArgs() []string {
	return []string{
		"--kubeconfig=" + p.Kubeconfig(),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=" + controllerQPS,
		"--kube-api-burst=" + controllerBurst,
		"--profiling=false",
	}
}

func (p *Plane) kwokArgs() []string {
	return []string{
		"--kubeconfig=" + p.Kubeconfig(),
		"--config=" + p.path("kwok.yaml"),
		"--manage-all-nodes=true",
		// Without Leases the node controller takes the nodes for dead after 50 seconds, since their stage has a heartbeat
		// every 10 minutes, and marks their pods as not ready, which they then stay.
		"--node-lease-duration-seconds=40",
	}
}

// components are the processes of a plane.
type components struct {
	etcd        *process            // nil after a failed Restore
	apiServer   *process            // nil while it is killed
	controllers map[string]*process // the clients of the API server, by program
}

// stop ends all components and returns the errors of those that had ended before. Clients end before their servers.
func (c *components) stop() error {
	err := stopAll(slices.Collect(maps.Values(c.controllers))...)
	return errors.Join(err, stopAll(c.apiServer), stopAll(c.etcd))
}

// kill ends all components at once.
func (c *components) kill() {
	for program := range c.controllers {
		c.controllers[program].kill()
		delete(c.controllers, program)
	}
	kill(&c.apiServer)
	kill(&c.etcd)
}

// kill ends a process, if there is one, and clears the variable.
func kill(running **process) {
	if *running != nil {
		(*running).kill()
		*running = nil
	}
}

// terminationTimeout is how long each tier of components may take to end by itself.
const terminationTimeout = 2 * time.Second

func stopAll(processes ...*process) error {
	errs := make([]error, len(processes))
	var wg sync.WaitGroup
	for i, process := range processes {
		if process != nil {
			wg.Go(func() { errs[i] = process.stop(terminationTimeout) })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}
