//go:build linux

package charts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

const (
	// podsVariable requires the tests with pods if it is "required".
	podsVariable = "MUSTER_PODS"
	// folderVariable is the folder of the node, for a test that runs in its own namespaces.
	folderVariable = "MUSTER_PODS_FOLDER"

	nodeName = "node"
	// nodeIP is the address of the node, and of the bridge to which its pods are connected.
	nodeIP = "10.99.0.1"
	// serviceIP is the address of the Service kubernetes of a control plane.
	serviceIP  = "10.0.0.1"
	pauseImage = "localhost/pause:1"
)

// isolated runs a test again, in a process with network, mount and process namespaces of its own. When that process
// ends, its children and their networks and mounts are removed. isolated reports whether the caller runs in that
// process.
func isolated(t *testing.T) bool {
	t.Helper()
	if os.Getenv(folderVariable) != "" {
		run(t, "mount", "--make-rprivate", "/")
		run(t, "mount", "-t", "proc", "proc", "/proc")
		run(t, "mount", "-t", "tmpfs", "tmpfs", "/run")
		run(t, "ip", "link", "set", "lo", "up")
		run(t, "ip", "address", "add", serviceIP+"/32", "dev", "lo")
		run(t, "ip", "address", "add", nodeIP+"/32", "dev", "lo")
		return true
	}
	if os.Getenv(podsVariable) != "required" {
		t.Skipf("SKIPPED, no pods run: the programs of a node are built for some minutes; %s=required runs the test",
			podsVariable)
	}
	require.Zero(t, os.Geteuid(), "a node needs root")
	for _, program := range []string{"runc", "ip", "mount"} {
		_, err := exec.LookPath(program)
		require.NoError(t, err, "a node needs the packages runc, iproute2 and mount")
	}
	// The folder is removed after the process has ended, and with it all mounts below the folder.
	folder := t.TempDir()
	for _, root := range cgroupRoots(t) {
		group := filepath.Join(root, cgroupOf(folder))
		require.NoError(t, os.Mkdir(group, 0o755))
		t.Cleanup(func() { removeCgroup(t, group) })
	}
	// The end of the thread that starts the process ends the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	command := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v",
		"-test.timeout=20m")
	command.Env = append(os.Environ(), folderVariable+"="+folder)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL,
	}
	require.NoError(t, command.Run(), "the test in its own namespaces")
	return false
}

// cgroupOf is the name of the cgroup of a node with a temporary folder.
func cgroupOf(folder string) string { return filepath.Base(filepath.Dir(folder)) }

// cgroupRoots are the root of the cgroup file system, or, with version 1, those of its controllers.
func cgroupRoots(t *testing.T) []string {
	t.Helper()
	const root = "/sys/fs/cgroup"
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		return []string{root}
	}
	roots, err := filepath.Glob(filepath.Join(root, "*"))
	require.NoError(t, err)
	require.NotEmpty(t, roots, "cgroups are mounted")
	return roots
}

// removeCgroup removes a cgroup and those below it. Their processes have ended, but the kernel may not have removed
// them yet.
func removeCgroup(t *testing.T, folder string) {
	t.Helper()
	mustertest.Eventually(t, time.Minute, folder+" is removed", func() error {
		var folders []string
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				folders = append(folders, path)
			}
			return err
		})
		for i := len(folders) - 1; i >= 0 && err == nil; i-- {
			err = os.Remove(folders[i])
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// node is a kubelet with containerd, the scheduler, and the network of the pods. They run next to a control plane and
// can reach its Service kubernetes.
type node struct {
	t        *testing.T
	folder   string
	cgroup   string
	binaries string // of containerd, of the kubelet and of the network plugins
}

func startNode(t *testing.T, plane *localplane.Plane, c client.Client) *node {
	t.Helper()
	folder := os.Getenv(folderVariable)
	n := &node{t: t, folder: folder, cgroup: cgroupOf(folder), binaries: buildNode(t)}
	n.forward(plane.Config())
	n.write("containerd.toml", containerdConfig)
	n.write("net.d/10-bridge.conflist", networkConfig)
	n.write("kubelet.yaml", kubeletConfig)
	kubeconfig, err := localplane.Kubeconfig(plane.Config())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(n.path("kubeconfig"), kubeconfig, 0o600))
	programs, err := localplane.Binaries(t.Context(), localplane.Options{})
	require.NoError(t, err)
	n.start(filepath.Join(programs, "kube-scheduler"), "--kubeconfig="+n.path("kubeconfig"), "--leader-elect=false",
		"--secure-port=0")
	n.startContainerd()
	n.importImage("pause", pauseImage)
	n.startKubelet()
	n.waitForReady(c)
	return n
}

// run runs a program of the system, such as mount or ip.
func run(t *testing.T, command ...string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput()
	require.NoError(t, err, "%s: %s", strings.Join(command, " "), output)
}

func (n *node) path(name string) string { return filepath.Join(n.folder, name) }

// write writes a file from a template with the folder, the binaries and the cgroup of the node.
func (n *node) write(name, text string) {
	n.t.Helper()
	values := strings.NewReplacer("{{.Folder}}", n.folder, "{{.Binaries}}", n.binaries, "{{.Pause}}", pauseImage,
		"{{.Cgroup}}", n.cgroup, "{{.IP}}", nodeIP)
	require.NoError(n.t, os.MkdirAll(filepath.Dir(n.path(name)), 0o755))
	require.NoError(n.t, os.WriteFile(n.path(name), []byte(values.Replace(text)), 0o600))
}

// forward forwards connections to the Service kubernetes to the API server, as kube-proxy would.
func (n *node) forward(config *rest.Config) {
	n.t.Helper()
	server, err := url.Parse(config.Host)
	require.NoError(n.t, err)
	listener, err := new(net.ListenConfig).Listen(n.t.Context(), "tcp", net.JoinHostPort(serviceIP, "443"))
	require.NoError(n.t, err)
	n.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return // the test ends
			}
			go func() {
				defer in.Close()
				out, err := new(net.Dialer).DialContext(context.Background(), "tcp", server.Host)
				if err != nil {
					return // the API server is down, and the client observes that the connection ends
				}
				go func() {
					_, _ = io.Copy(out, in)
					_ = out.Close()
				}()
				_, _ = io.Copy(in, out)
			}()
		}
	}()
}

// start starts a program whose log is in the folder of the node. It ends with the test.
func (n *node) start(program string, args ...string) *exec.Cmd {
	n.t.Helper()
	log, err := os.OpenFile(n.path(filepath.Base(program)+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(n.t, err)
	defer log.Close()
	command := exec.Command(program, args...) //nolint:noctx // It ends when the test does, after the pods.
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), "PATH="+n.binaries+":"+os.Getenv("PATH"))
	require.NoError(n.t, command.Start())
	n.t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if n.t.Failed() {
			n.t.Logf("the log of %s ends:\n%s", filepath.Base(program), tail(n.path(filepath.Base(program)+".log")))
		}
	})
	return command
}

// tail returns the end of a file.
func tail(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-8000):])
}

func (n *node) startContainerd() *exec.Cmd {
	n.t.Helper()
	started := n.start(filepath.Join(n.binaries, "containerd"), "--config="+n.path("containerd.toml"))
	mustertest.Eventually(n.t, time.Minute, "containerd responds", func() error {
		_, err := n.ctr("version")
		return err
	})
	return started
}

func (n *node) ctr(args ...string) (string, error) {
	args = append([]string{"--address=" + n.path("containerd.sock"), "--namespace=k8s.io"}, args...)
	output, err := exec.CommandContext(n.t.Context(), filepath.Join(n.binaries, "ctr"), args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, output)
	}
	return string(output), err
}

func (n *node) startKubelet() *exec.Cmd {
	n.t.Helper()
	return n.start(filepath.Join(n.binaries, "kubelet"), "--config="+n.path("kubelet.yaml"),
		"--kubeconfig="+n.path("kubeconfig"), "--root-dir="+n.path("kubelet"), "--cert-dir="+n.path("kubelet-certificates"),
		"--hostname-override="+nodeName, "--node-ip="+nodeIP)
}

// waitForReady waits until the Node is ready.
func (n *node) waitForReady(c client.Client) {
	n.t.Helper()
	node := &corev1.Node{}
	mustertest.Eventually(n.t, timeout, "the node is ready", func() error {
		if err := c.Get(n.t.Context(), client.ObjectKey{Name: nodeName}, node); err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("the conditions of the node are %+v", node.Status.Conditions)
	})
}

// importImage imports an image built from scratch: a program of the examples, or of testdata, and nothing else.
func (n *node) importImage(program string, references ...string) {
	n.t.Helper()
	folder := filepath.Join("..", "..", "examples", program)
	if program == "pause" {
		folder = filepath.Join("testdata", "pause")
	}
	binary := filepath.Join(n.t.TempDir(), program)
	build := exec.CommandContext(n.t.Context(), "go", "build", "-trimpath", "-ldflags=-s", "-o", binary, ".")
	build.Dir, build.Env = folder, append(os.Environ(), "CGO_ENABLED=0")
	output, err := build.CombinedOutput()
	require.NoError(n.t, err, string(output))
	layer := filepath.Join(n.t.TempDir(), "layer.tar")
	run(n.t, "tar", "--create", "--owner=0", "--group=0", "--file="+layer, "--directory="+filepath.Dir(binary), program)
	content, err := tarball.LayerFromFile(layer)
	require.NoError(n.t, err)
	image, err := mutate.AppendLayers(empty.Image, content)
	require.NoError(n.t, err)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		OS: runtime.GOOS, Architecture: runtime.GOARCH,
		Config: v1.Config{User: "65532:65532", Entrypoint: []string{"/" + program}},
		RootFS: must(image.ConfigFile()).RootFS,
	})
	require.NoError(n.t, err)
	images := map[name.Reference]v1.Image{}
	for _, reference := range references {
		images[must(name.ParseReference(reference))] = image
	}
	archive := filepath.Join(n.t.TempDir(), "image.tar")
	require.NoError(n.t, tarball.MultiRefWriteToFile(archive, images))
	_, err = n.ctr("images", "import", archive)
	require.NoError(n.t, err)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// buildNode builds the programs of the module internal/node.
func buildNode(t *testing.T) string {
	t.Helper()
	module := filepath.Join("..", "node")
	list := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}}", "tool")
	list.Dir = module
	tools, err := list.Output()
	require.NoError(t, err)
	folder := t.TempDir()
	args := append([]string{"build", "-trimpath", "-ldflags=-s", "-o", folder + "/"}, strings.Fields(string(tools))...)
	build := exec.CommandContext(t.Context(), "go", args...)
	build.Dir, build.Env = module, append(os.Environ(), "CGO_ENABLED=0")
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))
	return folder
}

const (
	containerdConfig = `version = 3
root = '{{.Folder}}/containerd'
state = '/run/containerd'
imports = []
disabled_plugins = ['io.containerd.nri.v1.nri']
[grpc]
  address = '{{.Folder}}/containerd.sock'
[ttrpc]
  address = '{{.Folder}}/containerd.sock.ttrpc'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '{{.Pause}}'
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  disable_apparmor = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['{{.Binaries}}']
  conf_dir = '{{.Folder}}/net.d'
`
	networkConfig = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{
  "type": "bridge", "bridge": "pods", "isGateway": true,
  "ipam": {"type": "host-local", "dataDir": "{{.Folder}}/addresses", "routes": [{"dst": "0.0.0.0/0"}],
    "ranges": [[{"subnet": "10.99.1.0/24"}]]}
}]}
`
	kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: {{.IP}}
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /{{.Cgroup}}
containerRuntimeEndpoint: unix://{{.Folder}}/containerd.sock
evictionHard: {memory.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%"}
failCgroupV1: false
failSwapOn: false
healthzPort: 0
imageGCHighThresholdPercent: 100
localStorageCapacityIsolation: false
nodeStatusUpdateFrequency: 2s
oomScoreAdj: 0
podLogsDir: {{.Folder}}/logs
readOnlyPort: 0
resolvConf: ""
volumePluginDir: {{.Folder}}/volume-plugins
featureGates: {KubeletInUserNamespace: true}
`
)

// crash ends all processes of the node at once: containerd, the kubelet, and the processes of pods with their shims.
func (n *node) crash() {
	n.t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(n.t, err)
	ended := 0
	for _, process := range processes {
		program, err := os.Readlink(filepath.Join(process, "exe"))
		if err != nil {
			continue // it has ended
		}
		cgroups, err := os.ReadFile(filepath.Join(process, "cgroup"))
		if err != nil {
			continue
		}
		if filepath.Dir(program) != n.binaries && !strings.Contains(string(cgroups), "/"+n.cgroup+"/") {
			continue // the test, its control plane, or the scheduler
		}
		pid, err := strconv.Atoi(filepath.Base(process))
		require.NoError(n.t, err)
		if err := syscall.Kill(pid, syscall.SIGKILL); err == nil {
			ended++
		}
	}
	require.GreaterOrEqual(n.t, ended, 2+3*3,
		"containerd, the kubelet, and three pods with a shim and two processes each")
}
