package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// TestBackupAndRestore_Commands runs every command of docs/operations/backup-restore.md verbatim, in the situation that
// the document describes. The names of the clusters are contexts of one kubeconfig.
func TestBackupAndRestore_Commands(t *testing.T) {
	blocks := commandBlocks(t, filepath.Join("..", "..", "docs", "operations", "backup-restore.md"))
	require.Len(t, blocks, 5, "the document has another number of blocks with commands")
	t.Chdir(t.TempDir())
	d := &documented{t: t, planes: map[string]*localplane.Plane{}}
	for _, name := range []string{"hub", "rebuilt", "new-hub", "east", "west"} {
		d.planes[name] = localplane.ForTest(t, localplane.Options{Name: name})
	}
	d.use("hub")

	// A backup that is older than the member.
	d.run("musterctl init")
	stop := d.runHub("hub")
	d.run("musterctl token create early --join-file early.yaml")
	d.run("musterctl register --join-file early.yaml --member-context east")
	backup, err := d.planes["hub"].Snapshot(t.Context())
	require.NoError(t, err)
	d.runAgent("east")
	d.eventually("MemberCluster east exists", func() error {
		return d.client("hub").Get(t.Context(), client.ObjectKey{Name: "east"}, &v1alpha1.MemberCluster{})
	})
	d.run("musterctl accept east")
	d.joined("hub", "east")
	d.work("hub", "shop")
	shop := d.applied("shop")
	stop()
	require.NoError(t, d.planes["hub"].Restore(t.Context(), backup))
	stop = d.runHub("hub")
	d.run(blocks[0]...)
	d.eventually("the JoinRequest of the member waits", func() error {
		var requests v1alpha1.JoinRequestList
		if err := d.client("hub").List(t.Context(), &requests); err != nil {
			return err
		}
		for i := range requests.Items {
			issued := meta.FindStatusCondition(requests.Items[i].Status.Conditions, v1alpha1.ConditionIssued)
			if issued != nil && issued.Reason == v1alpha1.ReasonUnknownMember {
				return nil
			}
		}
		return fmt.Errorf("%d JoinRequests exist", len(requests.Items))
	})
	d.run(blocks[1]...)
	d.joined("hub", "east")

	// Orphans: the Work is not in the backup.
	d.eventually("the hub reports orphans", func() error {
		if _, out, _ := call(t, "", "get", "orphans"); !strings.Contains(out, "east") {
			return fmt.Errorf("output is %s", out)
		}
		return nil
	})
	require.Equal(t, shop, d.applied("shop"))
	d.run(blocks[2]...)
	d.eventually("the orphan is deleted on request", func() error {
		err := d.client("east").Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "shop"}, &corev1.ConfigMap{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("ConfigMap exists (%w)", err)
	})

	// A hub that is lost without a backup.
	d.work("hub", "kept")
	kept := d.applied("kept")
	d.run("musterctl token create late --auto-accept --join-file late.yaml")
	d.run("musterctl register --join-file late.yaml --member-context west")
	d.runAgent("west")
	d.joined("hub", "west")
	stop()
	require.NoError(t, d.planes["hub"].Stop())
	d.use("rebuilt")
	require.Len(t, blocks[3], 2)
	d.run(blocks[3][0])
	rebuilt := make(chan string, 1)
	go func() {
		code, out, errs := call(t, "", strings.Fields(blocks[3][1])[1:]...)
		rebuilt <- fmt.Sprintf("exit code %d: %s%s", code, out, errs)
	}()
	d.eventually("rebuild has created the MemberClusters, and waits for the controllers", func() error {
		return d.client("rebuilt").Get(t.Context(), client.ObjectKey{Name: "west"}, &v1alpha1.MemberCluster{})
	})
	stop = d.runHub("rebuilt")
	require.Contains(t, <-rebuilt, "exit code 0")
	d.joined("rebuilt", "east")
	d.joined("rebuilt", "west")
	require.Equal(t, kept, d.applied("kept"))

	// A member that moves.
	d.use("rebuilt", "former-hub")
	d.run("musterctl init --context new-hub")
	d.runHub("new-hub")
	d.run(blocks[4]...)
	d.joined("new-hub", "east")
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); <-time.After(200 * time.Millisecond) {
		require.Equal(t, kept, d.applied("kept"), "the former hub deletes nothing on the member")
	}
	stop()
}

// commandBlocks returns the commands of each block of a document with the language sh, without comments.
func commandBlocks(t *testing.T, file string) (blocks [][]string) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	inside := false
	for line := range strings.SplitSeq(string(content), "\n") {
		line, _, _ = strings.Cut(line, " #")
		switch line = strings.TrimSpace(line); {
		case line == "```sh":
			inside, blocks = true, append(blocks, nil)
		case line == "```":
			inside = false
		case inside:
			blocks[len(blocks)-1] = append(blocks[len(blocks)-1], line)
		}
	}
	return blocks
}

// documented contains the clusters of the document.
type documented struct {
	t      *testing.T
	planes map[string]*localplane.Plane
}

// use writes the kubeconfig that the commands use, with the given current context. Each alias is another context of the
// current cluster.
func (d *documented) use(current string, alias ...string) {
	d.t.Helper()
	file := clientcmdapi.NewConfig()
	file.CurrentContext = current
	for name, plane := range d.planes {
		config := plane.Config()
		file.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
		file.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
		file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	for _, name := range alias {
		file.Contexts[name] = file.Contexts[current]
	}
	require.NoError(d.t, clientcmd.WriteToFile(*file, "kubeconfig"))
	d.t.Setenv("KUBECONFIG", "kubeconfig")
}

// run runs commands of musterctl, and confirms their questions, and commands of kubectl.
func (d *documented) run(commands ...string) {
	d.t.Helper()
	for _, command := range commands {
		program, arguments, _ := strings.Cut(command, " ")
		if program == "kubectl" {
			d.kubectl(strings.Fields(arguments))
			continue
		}
		require.Equal(d.t, "musterctl", program)
		d.eventually(command, func() error {
			code, out, errs := call(d.t, "y\n", strings.Fields(arguments)...)
			if code != exitDone { // A hub that has just started can deny a request.
				return fmt.Errorf("exit code %d: %s%s", code, out, errs)
			}
			return nil
		})
	}
}

// kubectl implements the kubectl commands of the document: get RESOURCE and delete RESOURCE NAME.
func (d *documented) kubectl(arguments []string) {
	d.t.Helper()
	current, err := clientcmd.LoadFromFile("kubeconfig")
	require.NoError(d.t, err)
	kubeContext, namespace := current.CurrentContext, ""
	var words []string
	for i := 0; i < len(arguments); i++ {
		switch arguments[i] {
		case "-n":
			namespace = arguments[i+1]
			i++
		case "--context":
			kubeContext = arguments[i+1]
			i++
		default:
			words = append(words, arguments[i])
		}
	}
	c := d.client(current.Contexts[kubeContext].Cluster)
	kind, err := c.RESTMapper().KindFor(schema.GroupVersionResource{Resource: words[1]})
	require.NoError(d.t, err, "resource %s", words[1])
	switch {
	case words[0] == "get" && len(words) == 2:
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		require.NoError(d.t, c.List(d.t.Context(), list, client.InNamespace(namespace)))
		require.NotEmpty(d.t, list.Items, "%s in namespace %s", words[1], namespace)
	case words[0] == "delete" && len(words) == 3:
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(kind)
		o.SetNamespace(namespace)
		o.SetName(words[2])
		require.NoError(d.t, c.Delete(d.t.Context(), o))
	default:
		require.Fail(d.t, "the test does not implement the command", "kubectl %v", arguments)
	}
}

// runHub runs a complete hub until stop is called or the test ends.
func (d *documented) runHub(name string) (stop func()) {
	d.t.Helper()
	return mustertest.StartManager(d.t, d.planes[name].Config(), d.manager(), func(mgr manager.Manager) error {
		return assembly.SetupHub(d.t.Context(), mgr, assembly.HubOptions{})
	})
}

// runAgent runs the complete agent of a member until the test ends.
func (d *documented) runAgent(name string) {
	d.t.Helper()
	mustertest.StartManager(d.t, d.planes[name].Config(), d.manager(), func(mgr manager.Manager) error {
		return assembly.SetupAgent(d.t.Context(), mgr, assembly.AgentOptions{Membership: agent.Options{Name: name}})
	})
}

func (d *documented) manager() manager.Options {
	return manager.Options{
		Scheme: mustertest.Scheme(assembly.AddToScheme), Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	}
}

func (d *documented) client(name string) client.Client {
	d.t.Helper()
	c, err := newClient(d.planes[name].Config())
	require.NoError(d.t, err)
	return c
}

func (d *documented) eventually(what string, check func() error) {
	d.t.Helper()
	mustertest.Eventually(d.t, 2*time.Minute, what, check)
}

func (d *documented) joined(hub, member string) {
	d.t.Helper()
	d.eventually(member+" is joined and healthy", func() error {
		cluster := &v1alpha1.MemberCluster{}
		if err := d.client(hub).Get(d.t.Context(), client.ObjectKey{Name: member}, cluster); err != nil {
			return err
		}
		if meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionHealthy) {
			return nil
		}
		return fmt.Errorf("phase %s, conditions %+v", cluster.Status.Phase, cluster.Status.Conditions)
	})
}

// work creates a Work for member east with a ConfigMap of the same name, and waits until the member has the ConfigMap.
func (d *documented) work(hub, name string) {
	d.t.Helper()
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "member-east", Name: name}}
	work.Spec.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": %q, "namespace": "default"}}`, name)}}}
	require.NoError(d.t, d.client(hub).Create(d.t.Context(), work))
	d.eventually("member east has ConfigMap "+name, func() error {
		return d.client("east").Get(d.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &corev1.ConfigMap{})
	})
}

// applied returns the UID of a ConfigMap on member east.
func (d *documented) applied(name string) types.UID {
	d.t.Helper()
	config := &corev1.ConfigMap{}
	require.NoError(d.t, d.client("east").Get(d.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, config))
	return config.UID
}
