package charts

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/mustertest/localplane"
)

// programs are the programs of the examples that tests have built, in a folder of TestMain.
var programs = struct {
	folder string
	built  map[string]bool
}{built: map[string]bool{}}

// programsVariable names the environment variable with a folder of programs that these tests run instead of building
// them, such as those that internal/e2e has built in a module outside of this repository.
const programsVariable = "MUSTER_PROGRAMS"

// build builds a program of the examples, once for all tests of this package.
func build(t *testing.T, name string) string {
	t.Helper()
	if folder := os.Getenv(programsVariable); folder != "" {
		binary := filepath.Join(folder, name)
		require.FileExists(t, binary, programsVariable)
		return binary
	}
	binary := filepath.Join(programs.folder, name)
	if programs.built[name] {
		return binary
	}
	command := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
	command.Dir = filepath.Join("..", "..", "examples", name)
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
	programs.built[name] = true
	return binary
}

func deploymentOf(t *testing.T, object *unstructured.Unstructured) *appsv1.Deployment {
	t.Helper()
	deployment := &appsv1.Deployment{}
	require.NotNil(t, object)
	converter := runtime.DefaultUnstructuredConverter
	require.NoError(t, converter.FromUnstructuredWithValidation(object.Object, deployment, true))
	return deployment
}

func containerOf(t *testing.T, object *unstructured.Unstructured) corev1.Container {
	t.Helper()
	deployment := deploymentOf(t, object)
	require.Len(t, deployment.Spec.Template.Spec.Containers, 1)
	return deployment.Spec.Template.Spec.Containers[0]
}

// pod runs a binary as the container of a Deployment: with its arguments, environment, ConfigMaps, Secrets, and a token
// of its ServiceAccount. No kubelet runs here. Ports, which may be in use, become random ones. Stop ends the process,
// and a process that ends before fails the test unless mayExit is true.
type pod struct {
	t       *testing.T
	binary  string
	admin   *rest.Config
	mayExit bool
	output  bytes.Buffer
	stop    func()

	namespace string
}

func (p *pod) start(object *unstructured.Unstructured) {
	t := p.t
	t.Helper()
	c, err := client.New(p.admin, client.Options{})
	require.NoError(t, err)
	p.namespace = object.GetNamespace()
	spec := deploymentOf(t, object).Spec.Template.Spec
	container := containerOf(t, object)
	folder := t.TempDir()
	kubeconfig, err := localplane.Kubeconfig(p.account(c, spec.ServiceAccountName))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "kubeconfig"), kubeconfig, 0o600))

	ctx, cancel := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, p.binary, p.arguments(c, &spec, folder)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(folder, "kubeconfig"))
	for _, variable := range container.Env {
		value := variable.Value
		if from := variable.ValueFrom; from != nil {
			require.Equal(t, "metadata.namespace", from.FieldRef.FieldPath)
			value = p.namespace
		}
		command.Env = append(command.Env, variable.Name+"="+value)
	}
	command.Stdout, command.Stderr = &p.output, &p.output
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 30 * time.Second
	require.NoError(t, command.Start())
	exited := make(chan error, 1)
	go func() { exited <- command.Wait() }()
	p.stop = sync.OnceFunc(func() {
		defer cancel()
		select {
		case err := <-exited:
			if !p.mayExit {
				t.Errorf("%s ended before the test stopped it: %v", p.binary, err)
			}
		default:
			cancel()
			<-exited //nolint:errcheck // The signal ends the process with an error.
		}
		if t.Failed() {
			t.Logf("%s:\n%s", p.binary, p.output.String())
		}
	})
	t.Cleanup(p.stop)
}

// arguments returns the arguments of the container, in which the mounted ConfigMaps and Secrets are files in a folder.
func (p *pod) arguments(c client.Client, spec *corev1.PodSpec, folder string) []string {
	t := p.t
	t.Helper()
	container := spec.Containers[0]
	args := append([]string{}, container.Args...)
	for _, mount := range container.VolumeMounts {
		for _, volume := range spec.Volumes {
			if volume.Name != mount.Name {
				continue
			}
			folder := filepath.Join(folder, volume.Name)
			require.NoError(t, os.MkdirAll(folder, 0o700))
			for key, content := range p.files(c, &volume) {
				require.NoError(t, os.WriteFile(filepath.Join(folder, key), content, 0o600))
			}
			for i := range args {
				args[i] = strings.Replace(args[i], "="+mount.MountPath+"/", "="+folder+"/", 1)
			}
		}
	}
	for i, arg := range args {
		if name, _, address := strings.Cut(arg, "-bind-address="); address {
			args[i] = name + "-bind-address=127.0.0.1:0"
		}
	}
	return args
}

// files returns the content of a volume with a ConfigMap or a Secret.
func (p *pod) files(c client.Client, volume *corev1.Volume) map[string][]byte {
	p.t.Helper()
	if volume.Secret != nil {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: p.namespace, Name: volume.Secret.SecretName}
		require.NoError(p.t, c.Get(p.t.Context(), key, secret))
		return secret.Data
	}
	configMap := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: p.namespace, Name: volume.ConfigMap.Name}
	require.NoError(p.t, c.Get(p.t.Context(), key, configMap))
	files := map[string][]byte{}
	for key, content := range configMap.Data {
		files[key] = []byte(content)
	}
	return files
}

// account returns a configuration with a token of a ServiceAccount.
func (p *pod) account(c client.Client, name string) *rest.Config {
	p.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name}}
	request := &authenticationv1.TokenRequest{}
	require.NoError(p.t, c.SubResource("token").Create(p.t.Context(), account, request))
	config := rest.AnonymousClientConfig(p.admin)
	config.BearerToken = request.Status.Token
	return config
}
