package localplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
)

// The names of the programs, as in Kubernetes.
const (
	etcdName              = "etcd"
	apiServerName         = "kube-apiserver"
	controllerManagerName = "kube-controller-manager"
	schedulerName         = "kube-scheduler"
	kwokName              = "kwok"
)

// etcdFolder is the subfolder of the plane's folder with the data of etcd.
const etcdFolder = "etcd"

// controllerQPS and controllerBurst are the client-side rate limits of the controllers. With the defaults (20 to 50),
// tests with many objects would wait for the rate limiter instead of the tested behavior.
const controllerQPS, controllerBurst = "1000", "2000"

// promptNamespaces makes a kube-controller-manager that was built here delete the contents of a namespace as soon as
// the namespace is deleted. The delays of Kubernetes, 5 seconds for each namespace and 8 seconds for each finalizer,
// are for clusters with several API servers.
const promptNamespaces = "MUSTER_PROMPT_NAMESPACES=true"

// NamespaceDelayAnnotation is an annotation on a namespace with a duration, such as "5s". When the namespace is
// deleted, its objects are deleted after that delay. Kubernetes waits 5 seconds. A plane whose kube-controller-manager
// is built here waits 100 ms by default.
const NamespaceDelayAnnotation = "localplane.muster.dev/namespace-delay"

// startComponents starts all components and waits until they are ready.
func (p *Plane) startComponents(ctx context.Context) error {
	client, err := newPlaneClient(p.admin)
	if err != nil {
		return err
	}
	defer client.close()

	// The API server retries until etcd is available. The other components exit early if the API server is not available.
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
	// The peer URL is a socket in the plane's folder. A single member has no peers, so a port would be wasted.
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
		// The member elects itself after up to one election timeout, which is a second by default.
		"--heartbeat-interval=10",
		"--election-timeout=100",
		// The data is deleted with the plane. Only a crash of the machine could lose it before that.
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
		// Without this flag, tokens of pods would be valid for a year, regardless of the requested expiration.
		"--service-account-extend-token-expiration=false",
		"--enable-bootstrap-token-auth",
		// Without --advertise-address, the API server looks for an address that is not a loopback address, and fails on a
		// machine without one. Endpoints must not contain loopback addresses, so the API server must not write the Endpoints
		// of the Service kubernetes.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--profiling=false",
	}
}

func (p *Plane) controllerManagerArgs() []string {
	// Both controllers are off by default; kubeadm enables them. They sign kube-public/cluster-info and delete expired
	// bootstrap tokens.
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
		// The default is 15 seconds, for which each test of an autoscaler would wait several times.
		"--horizontal-pod-autoscaler-sync-period=1s",
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
		// The stage of the nodes sends a heartbeat only every 10 minutes. Without Leases, the node controller would mark the
		// nodes as unhealthy after 50 seconds and their pods as not ready, and the pods would remain not ready.
		"--node-lease-duration-seconds=40",
	}
}

// components are the processes of a plane.
type components struct {
	etcd        *process            // nil after a failed Restore
	apiServer   *process            // nil after KillAPIServer
	controllers map[string]*process // the clients of the API server, by program
}

// stop ends all components, and returns the errors of components that had ended before. Nothing is lost with SIGKILL,
// because the data is removed with the plane, and an API server takes more than a second to end after SIGTERM.
func (c *components) stop() error {
	var errs []error
	for _, p := range append(slices.Collect(maps.Values(c.controllers)), c.apiServer, c.etcd) {
		if p != nil {
			errs = append(errs, p.ended())
		}
	}
	c.kill()
	return errors.Join(errs...)
}

// kill ends all components with SIGKILL. Clients end before their servers.
func (c *components) kill() {
	for program := range c.controllers {
		c.controllers[program].kill()
		delete(c.controllers, program)
	}
	kill(&c.apiServer)
	kill(&c.etcd)
}

// kill ends a process with SIGKILL, if it exists, and sets the variable to nil.
func kill(running **process) {
	if *running != nil {
		(*running).kill()
		*running = nil
	}
}
