package charts

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chartutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonv1alpha1 "github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// TestProcedures_KubeFleet is the procedure by which clusters join KubeFleet, have labels, report their status and
// leave: each has a ServiceAccount on the hub, which spec.identity of its MemberCluster names.
func TestProcedures_KubeFleet(t *testing.T) {
	p := newProcedure(t)
	hub := newHelm(t, p.hub.Config(), hubChart)
	p.startTimer()
	hub.install(values{"apiServerURL": p.hub.Config().Host, "apiServerCA": string(p.hub.Config().CAData)})
	p.runHub()
	join := filepath.Join(p.folder, "join.yaml")
	p.eventually("token", "create", "fleet", "--join-file", join)
	for _, m := range p.members {
		account := m.name + "-hub-cluster-access"
		p.apply(p.hub, fmt.Sprintf(`
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: muster-system, name: %[2]s}
---
apiVersion: v1
kind: Secret
metadata:
  namespace: muster-system
  name: %[2]s-token
  annotations: {kubernetes.io/service-account.name: %[2]s}
type: kubernetes.io/service-account-token
---
apiVersion: membership.muster.dev/v1alpha1
kind: MemberCluster
metadata: {name: %[1]s}
spec:
  accepted: true
  clusterID: %[3]s
  identity: {kind: ServiceAccount, namespace: muster-system, name: %[2]s}
  heartbeatPeriodSeconds: 5
`, m.name, account, m.id()))
		p.musterctl("register", "--join-file", join, "--member-kubeconfig", m.Kubeconfig(), "--image", "agent:v1",
			"--cluster-name", m.name, "--method", "identity", "--hub-kubeconfig", p.tokenOf(account), "--apply-anything")
		p.runAgent(m, m.Plane, namespace)
	}
	p.waitForMembers(v1alpha1.CredentialIdentity)

	p.label("east", "env", "prod")
	p.place("env: prod")
	p.waitForPlaced("east")
	p.requireNotPlaced("west", "north")
	for _, m := range p.members {
		status := waitForMemberCondition(t, p.onHub, m.name, v1alpha1.ConditionHealthy).Status
		require.True(t, meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReadyToJoin))
		require.NotEmpty(t, status.Version.Kubernetes)
		require.NotEmpty(t, status.Agents)
		require.NotNil(t, status.Agents[0].LastHeartbeat)
	}
	status := waitForMemberCondition(t, p.onHub, "east", v1alpha1.ConditionHealthy).Status
	require.NotZero(t, status.Resources.Allocatable.Cpu().Value(), "the cluster has a node")

	p.unregister()
	for _, m := range p.members {
		account := metav1.ObjectMeta{Namespace: namespace, Name: m.name + "-hub-cluster-access"}
		require.NoError(t, p.onHub.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: account}))
	}
	p.unplace()
	p.musterctl("token", "delete", "fleet")
	p.hubPod.stop()
	hub.uninstall()
}

// TestProcedures_Karmada is the procedure by which clusters join Karmada in push mode, leave it, and are registered in
// pull mode and unregistered.
func TestProcedures_Karmada(t *testing.T) {
	p := newProcedure(t)
	p.startTimer()
	p.init("--component", "push")
	for _, m := range p.members {
		p.musterctl("join", m.name, "--member-kubeconfig", m.Kubeconfig(), "--label", "env=prod")
	}
	p.waitForMembers(v1alpha1.CredentialToken)
	for _, m := range p.members {
		cluster := waitForMemberCondition(t, p.onHub, m.name, v1alpha1.ConditionHealthy)
		require.Equal(t, v1alpha1.JoinPush, cluster.Spec.JoinMode)
	}
	p.place("env: prod")
	p.waitForPlaced("east", "west", "north")
	p.unjoin()
	for _, m := range p.members {
		p.requireLeft(m)
	}

	p.startTimer()
	command := p.musterctl("token", "create", "--auto-accept", "--allow-label", "env", "--print-register-command")
	for _, m := range p.members {
		p.register(command, m, "--labels", "env=prod", "--apply-anything")
		p.runAgent(m, m.Plane, namespace)
	}
	p.waitForMembers(v1alpha1.CredentialToken)
	p.waitForPlaced("east", "west", "north")
	p.unregister()
	p.unplace()
	p.clean()
}

// TestProcedures_RancherFleet is the procedure by which clusters are registered with Rancher Fleet: initiated by the
// agent for a new cluster and for one that is predefined by its client ID, and initiated by the manager with a
// kubeconfig Secret as cluster-api writes it.
func TestProcedures_RancherFleet(t *testing.T) {
	p := newProcedure(t)
	east, west, north := p.members[0], p.members[1], p.members[2]
	hub := newHelm(t, p.hub.Config(), hubChart)
	p.startTimer()
	hub.install(values{
		"apiServerURL": p.hub.Config().Host, "apiServerCA": string(p.hub.Config().CAData),
		"push": values{"enabled": true}, "extraArgs": []any{"--install-image=agent:v1"},
	})
	p.runHub()
	token := &v1alpha1.JoinToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: "new-token"},
		Spec:       v1alpha1.JoinTokenSpec{AutoAccept: true, AllowedLabels: []v1alpha1.AllowedLabel{{Key: "env"}}},
	}
	secret := waitForSecret(t, p.onHub, token)
	install := func(m *procedureMember, more values) *helm {
		t.Helper()
		agentValues, err := chartutil.ReadValues(secret.Data[registration.ValuesKey])
		require.NoError(t, err)
		maps.Copy(agentValues, more)
		agentValues["applyAnything"] = true
		agent := newHelm(t, m.Config(), agentChart)
		agent.install(agentValues)
		p.runAgent(m, m.Plane, namespace)
		return agent
	}
	// A new cluster gets a name.
	first := install(east, values{"labels": values{"env": "dev"}})
	east.name = "cluster-" + string(east.id())[:8]
	p.apply(p.hub, `
apiVersion: membership.muster.dev/v1alpha1
kind: MemberCluster
metadata: {name: west, labels: {env: dev}}
spec: {accepted: true, clusterID: really-random}
`)
	second := install(west, values{"clusterID": "really-random"})
	// The hub installs an agent that applies the kinds that the user allows. The Secret has the form of cluster-api.
	p.apply(north.Plane, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: works, labels: {work.muster.dev/aggregate-to-agent: "true"}}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch, create, patch, delete]}
`)
	north.before.Insert("ClusterRole.rbac.authorization.k8s.io/v1 works")
	kubeconfig, err := os.ReadFile(north.Kubeconfig())
	require.NoError(t, err)
	capi := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: membership.ConnectionNamespace, Name: "north-kubeconfig",
			Labels: map[string]string{"cluster.x-k8s.io/cluster-name": "north"},
		},
		Type: "cluster.x-k8s.io/secret", Data: map[string][]byte{"value": kubeconfig},
	}
	require.NoError(t, p.onHub.Create(t.Context(), capi))
	p.apply(p.hub, `
apiVersion: membership.muster.dev/v1alpha1
kind: MemberCluster
metadata: {name: north, labels: {env: dev}}
spec: {accepted: true, joinMode: Install, kubeConfigSecretRef: {name: north-kubeconfig}}
`)
	p.runAgent(north, north.Plane, namespace)
	p.waitForMembers(v1alpha1.CredentialToken)

	p.place("env: dev")
	p.waitForPlaced(east.name, "west", "north")
	require.Equal(t, "dev", waitForMemberCondition(t, p.onHub, east.name, v1alpha1.ConditionHealthy).Labels["env"])

	for _, m := range p.members {
		m.agent.mayExit = true
		cluster := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: m.name}}
		require.NoError(t, p.onHub.Delete(t.Context(), cluster))
	}
	for _, m := range p.members {
		cluster := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: m.name}}
		mustertest.Eventually(t, timeout, m.name+" has left", func() error { return checkDeleted(t, p.onHub, cluster) })
	}
	first.uninstall()
	second.uninstall()
	for _, m := range p.members {
		p.requireLeft(m)
	}
	require.NoError(t, p.onHub.Delete(t.Context(), capi))
	require.NoError(t, p.onHub.Delete(t.Context(), token))
	p.unplace()
	p.hubPod.stop()
	hub.uninstall()
}

// TestProcedures_OCM is the procedure by which clusters are registered with Open Cluster Management: init, join in the
// default, hosted and singleton mode, accept, a ManifestWork, an add-on, unjoin and clean.
func TestProcedures_OCM(t *testing.T) {
	p := newProcedure(t)
	p.startTimer()
	command := p.init("--print-register-command")
	for _, m := range p.members {
		home, space, mode := m.Plane, namespace, []string{"--apply-anything"}
		switch m.name {
		case "west":
			mode = append(mode, "--mode", "singleton")
		case "north":
			home, space, mode = p.hub, "muster-member-north", append(mode, "--mode", "hosted")
		}
		p.register(command, m, mode...)
		p.runAgent(m, home, space)
	}
	p.eventually("accept", "east", "west", "north", "--wait", "3m")
	p.waitForMembers(v1alpha1.CredentialToken)

	for _, m := range p.members {
		p.apply(p.hub, fmt.Sprintf(`
apiVersion: work.muster.dev/v1alpha1
kind: Work
metadata: {namespace: member-%s, name: shop}
spec:
  manifests:
  - {apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: %s}}
`, m.name, placedName))
	}
	p.waitForPlaced("east", "west", "north")
	p.apply(p.hub, `
apiVersion: addon.muster.dev/v1alpha1
kind: AddonTemplate
metadata: {name: motd}
spec:
  version: "1"
  manifests:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: motd}, data: {text: "${CLUSTER_NAME}"}}
---
apiVersion: addon.muster.dev/v1alpha1
kind: Addon
metadata: {name: motd}
spec:
  configs: [{group: addon.muster.dev, resource: addontemplates, defaults: [{name: motd}]}]
`)
	p.musterctl("addon", "enable", "motd", "--members", "east,north", "--timeout", "3m")
	motd := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "muster-addons", Name: "motd"}}
	for _, m := range p.membersNamed("east", "north") {
		require.NoError(t, m.client.Get(t.Context(), client.ObjectKeyFromObject(motd), motd))
		require.Equal(t, m.name, motd.Data["text"])
	}
	p.musterctl("addon", "disable", "motd", "--members", "east", "--timeout", "3m")
	require.NoError(t, checkDeleted(t, p.membersNamed("east")[0].client, motd))

	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "member-west", Name: "shop"}}
	require.NoError(t, p.onHub.Delete(t.Context(), work))
	mustertest.Eventually(t, timeout, "the Work is deleted", func() error { return checkDeleted(t, p.onHub, work) })
	p.requireNotPlaced("west")

	p.unregister()
	require.NoError(t, checkDeleted(t, p.membersNamed("north")[0].client, motd), "the add-on leaves with the member")
	p.musterctl("clean", "agent", "--yes", "--member-kubeconfig", p.hub.Kubeconfig(), "--namespace",
		"muster-member-north")
	require.NoError(t, checkDeleted(t, p.onHub, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "muster-member-north", Name: agentChart},
	}))
	require.NoError(t, p.onHub.Delete(t.Context(), &addonv1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: "motd"}}))
	p.clean()
}

// TestProcedures_Kustomize is the procedure of docs/install.md with kubectl and kustomize. It uses the kustomizations
// of that page.
func TestProcedures_Kustomize(t *testing.T) {
	p := newProcedure(t)
	kubectl := p.kubectl()
	p.startTimer()
	hub, agent := p.kustomizations()
	kubectl(p.hub, "apply", "--kustomize", hub)
	p.runHub()
	secret := waitForSecret(t, p.onHub, &v1alpha1.JoinToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: "edge"},
		Spec:       v1alpha1.JoinTokenSpec{AutoAccept: true},
	})
	join := kubectl(p.hub, "--namespace", secret.Namespace, "get", "secret", secret.Name,
		"--output", `go-template={{index .data "join.yaml" | base64decode}}`)
	require.NoError(t, os.WriteFile(filepath.Join(p.folder, "join.yaml"), []byte(join), 0o600))
	for _, m := range p.members {
		m.name = "cluster-" + string(m.id())[:8]
		kubectl(m.Plane, "apply", "--kustomize", agent)
		kubectl(m.Plane, "--namespace", namespace, "create", "secret", "generic", "muster-bootstrap",
			"--from-file=join.yaml")
		p.runAgent(m, m.Plane, namespace)
	}
	p.waitForMembers(v1alpha1.CredentialToken)

	p.unjoin()
	for _, m := range p.members {
		kubectl(m.Plane, "delete", "--ignore-not-found", "--kustomize", agent)
		p.requireLeft(m)
	}
	p.musterctl("token", "delete", "edge")
	p.hubPod.stop()
	kubectl(p.hub, "delete", "--ignore-not-found", "--kustomize", hub)
	p.musterctl("clean", "hub", "--yes") // Deletes the objects that the program has created.
	require.Equal(t, "KIND   NAMESPACE   NAME   ACTION\n", p.musterctl("clean", "hub", "--yes"), "nothing is left")
}

// procedure is the environment of a user: an empty folder, a hub and three clusters. The user's commands run outside of
// this repository. Programs run as processes, with the arguments, environment and files of their Deployments.
type procedure struct {
	t       *testing.T
	hub     *localplane.Plane
	onHub   client.Client
	members []*procedureMember
	folder  string
	hubPod  *pod
	began   time.Time
}

// procedureMember is a cluster that joins the hub of a procedure, with an object of its own.
type procedureMember struct {
	*localplane.Plane
	t      *testing.T
	client client.Client
	name   string
	own    *corev1.ConfigMap
	before sets.Set[string]
	agent  *pod
}

// id returns the UID of the namespace kube-system.
func (m *procedureMember) id() types.UID {
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}
	require.NoError(m.t, m.client.Get(m.t.Context(), client.ObjectKeyFromObject(system), system))
	return system.UID
}

func (m *procedureMember) sweep() (sets.Set[string], error) {
	config := rest.CopyConfig(m.Config())
	config.WarningHandler = rest.NoWarnings{}
	return localplane.Sweep(m.t.Context(), config)
}

// newProcedure returns a procedure whose clusters are no members. It removes the agents of other tests.
func newProcedure(t *testing.T) *procedure {
	t.Helper()
	p := &procedure{t: t, hub: initPlane.ForTest(t), folder: t.TempDir()}
	p.onHub = newClient(t, p.hub.Config())
	for _, m := range []struct {
		name  string
		plane *localplane.Shared
	}{{"east", &registerPlane}, {"west", &memberPlane}, {"north", &hubPlane}} {
		p.members = append(p.members, p.newMember(m.name, m.plane.ForTest(t)))
	}
	return p
}

func (p *procedure) newMember(name string, plane *localplane.Plane) *procedureMember {
	t := p.t
	t.Helper()
	m := &procedureMember{Plane: plane, t: t, client: newClient(t, plane.Config()), name: name}
	agent := newHelm(t, plane.Config(), agentChart)
	if _, err := agent.config.Releases.Last(agentChart); err == nil {
		agent.uninstall()
	}
	p.musterctl("clean", "--yes", "--member-kubeconfig", m.Kubeconfig())
	m.own = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "own-"}, Data: map[string]string{"a": "b"},
	}
	require.NoError(t, m.client.Create(t.Context(), m.own))
	var err error
	m.before, err = m.sweep()
	require.NoError(t, err)
	return m
}

// startTimer begins to measure the time until the members have joined.
func (p *procedure) startTimer() { p.began = time.Now() }

// command returns the exit code and the output of musterctl in the folder of the user.
func (p *procedure) command(args ...string) (output string, err error) {
	p.t.Helper()
	command := exec.CommandContext(p.t.Context(), build(p.t, "musterctl"), args...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr, command.Dir = &out, &errs, p.folder
	command.Env = append(os.Environ(), "KUBECONFIG="+p.hub.Kubeconfig())
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("musterctl %v: %w: %s", args, err, errs.String())
	}
	return out.String(), nil
}

func (p *procedure) musterctl(args ...string) (output string) {
	p.t.Helper()
	began := time.Now()
	output, err := p.command(args...)
	require.NoError(p.t, err)
	p.t.Logf("%.1f s: musterctl %s", time.Since(began).Seconds(), strings.Join(args[:min(3, len(args))], " "))
	return output
}

// eventually repeats a command until it succeeds. The program of the hub has just been started.
func (p *procedure) eventually(args ...string) {
	p.t.Helper()
	mustertest.Eventually(p.t, timeout, strings.Join(args, " "), func() error {
		_, err := p.command(args...)
		return err
	})
}

// apply is kubectl apply.
func (p *procedure) apply(plane *localplane.Plane, manifests string) {
	p.t.Helper()
	c := newClient(p.t, plane.Config())
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		object := &unstructured.Unstructured{}
		require.NoError(p.t, yaml.Unmarshal([]byte(document), &object.Object), document)
		err := c.Apply(p.t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"))
		require.NoError(p.t, err, document)
	}
}

// kubectl returns a function that runs kubectl in the folder of the user, and returns its output.
func (p *procedure) kubectl() func(plane *localplane.Plane, args ...string) string {
	t := p.t
	t.Helper()
	binary, err := exec.LookPath("kubectl")
	if err != nil {
		binary = filepath.Join(programs.folder, "kubectl")
		command := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "k8s.io/kubernetes/cmd/kubectl")
		command.Dir = filepath.Join("..", "controlplane")
		output, err := command.CombinedOutput()
		require.NoError(t, err, string(output))
	}
	return func(plane *localplane.Plane, args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), binary, append([]string{"--kubeconfig", plane.Kubeconfig()}, args...)...)
		var out, errs bytes.Buffer
		command.Stdout, command.Stderr, command.Dir = &out, &errs, p.folder
		require.NoError(t, command.Run(), "kubectl %v: %s", args, &errs)
		return out.String()
	}
}

var kustomization = regexp.MustCompile("(?s)```yaml\n(apiVersion: kustomize.config.k8s.io.*?)```")

// kustomizations writes the kustomizations of docs/install.md into the folder of the user, and returns the names of
// their folders. They refer to this repository instead of its address.
func (p *procedure) kustomizations() (hub, agent string) {
	t := p.t
	t.Helper()
	content, err := os.ReadFile(document)
	require.NoError(t, err)
	found := kustomization.FindAllStringSubmatch(string(content), -1)
	require.Len(t, found, 2)
	repository, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	for i, name := range []string{"hub", "agent"} {
		folder := filepath.Join(p.folder, name)
		require.NoError(t, os.Mkdir(folder, 0o700))
		here, err := filepath.Rel(folder, repository)
		require.NoError(t, err)
		text := strings.NewReplacer("https://github.com/muster-sdk/muster", here,
			"https://hub.example.com:6443", p.hub.Config().Host).Replace(found[i][1])
		require.NoError(t, os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600))
	}
	return "hub", "agent"
}

// label is kubectl label membercluster.
func (p *procedure) label(member, key, value string) {
	p.t.Helper()
	cluster := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: member}}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value)
	require.NoError(p.t, p.onHub.Patch(p.t.Context(), cluster, client.RawPatch("application/merge-patch+json", patch)))
}

// init runs musterctl init with more flags, and starts the program of the hub as soon as it is deployed. It returns the
// output of init.
func (p *procedure) init(flags ...string) (output string) {
	t := p.t
	t.Helper()
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		output, err = p.command(append([]string{"init", "--image", "hub:v1", "--server", p.hub.Config().Host}, flags...)...)
	}()
	p.runHub()
	<-done
	require.NoError(t, err)
	return output
}

// clean deletes all JoinTokens, removes the hub, and checks that nothing of the hub is left except namespaces,
// definitions and their objects.
func (p *procedure) clean() {
	t := p.t
	t.Helper()
	for name := range strings.FieldsSeq(p.musterctl("get", "tokens", "-o", "name")) {
		_, name, _ = strings.Cut(name, "/")
		p.musterctl("token", "delete", name)
	}
	mustertest.Eventually(t, timeout, "the hub may be removed", func() error {
		_, err := p.command("clean", "hub", "--dry-run")
		return err
	})
	p.hubPod.stop()
	require.NotContains(t, p.musterctl("clean", "hub", "--yes"), " keep")
	require.Equal(t, "KIND   NAMESPACE   NAME   ACTION\n", p.musterctl("clean", "hub", "--yes"), "nothing is left")
}

// register runs a command that the hub has printed, with the flags of the user, in a shell.
func (p *procedure) register(command string, m *procedureMember, flags ...string) {
	t := p.t
	t.Helper()
	const register = "musterctl register "
	require.True(t, strings.HasPrefix(command, register), command)
	flags = append(flags, "--member-kubeconfig", m.Kubeconfig(), "--image", "agent:v1", "--cluster-name", m.name)
	shell := exec.CommandContext(t.Context(), "sh", "-c",
		register+strings.Join(flags, " ")+" "+strings.TrimPrefix(command, register))
	shell.Dir = p.folder
	shell.Env = append(os.Environ(), "KUBECONFIG="+p.hub.Kubeconfig(),
		"PATH="+filepath.Dir(build(t, "musterctl"))+string(os.PathListSeparator)+os.Getenv("PATH"))
	output, err := shell.CombinedOutput()
	require.NoError(t, err, string(output))
}

// unjoin lets all members leave, at the same time to save time.
func (p *procedure) unjoin() {
	p.t.Helper()
	ends := make(chan error)
	for _, m := range p.members {
		if m.agent != nil {
			m.agent.mayExit = true // The agent ends when the member has left.
		}
		go func() {
			_, err := p.command("unjoin", m.name)
			ends <- err
		}()
	}
	var errs []error
	for range p.members {
		errs = append(errs, <-ends)
	}
	require.NoError(p.t, errors.Join(errs...))
}

// unregister lets all members leave, removes their agents, and checks that nothing is left.
func (p *procedure) unregister() {
	p.t.Helper()
	p.unjoin()
	for _, m := range p.members {
		p.musterctl("clean", "agent", "--yes", "--member-kubeconfig", m.Kubeconfig())
		p.requireLeft(m)
	}
}

// runHub starts the program of the hub as soon as it is deployed.
func (p *procedure) runHub() {
	p.t.Helper()
	p.hubPod = &pod{t: p.t, binary: build(p.t, "hub"), admin: p.hub.Config()}
	p.hubPod.start(p.deployment(p.hub, namespace, hubChart))
}

// runAgent starts the program of the agent's Deployment on a plane.
func (p *procedure) runAgent(m *procedureMember, plane *localplane.Plane, namespace string) {
	p.t.Helper()
	m.agent = &pod{t: p.t, binary: build(p.t, "agent"), admin: plane.Config()}
	m.agent.start(p.deployment(plane, namespace, agentChart))
}

// deployment waits until a Deployment exists.
func (p *procedure) deployment(plane *localplane.Plane, namespace, name string) *unstructured.Unstructured {
	p.t.Helper()
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	c := newClient(p.t, plane.Config())
	mustertest.Eventually(p.t, timeout, "Deployment "+key.String()+" exists", func() error {
		return c.Get(p.t.Context(), key, deployment)
	})
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(deployment)
	require.NoError(p.t, err)
	return &unstructured.Unstructured{Object: object}
}

// waitForMembers waits until all members have joined with a credential of a type, and logs the time since startTimer.
func (p *procedure) waitForMembers(credential v1alpha1.CredentialType) {
	p.t.Helper()
	for _, m := range p.members {
		cluster := waitForMemberCondition(p.t, p.onHub, m.name, v1alpha1.ConditionJoined)
		require.Equal(p.t, credential, cluster.Spec.Credential)
	}
	p.t.Logf("three joined members after %.1f s", time.Since(p.began).Seconds())
}

// placedName is the name of the ConfigMap that the hub places on members, in the namespace default.
const placedName = "settings"

// place distributes a ConfigMap to the members with a label, in YAML, or to all if the label is empty.
func (p *procedure) place(label string) {
	p.t.Helper()
	p.apply(p.hub, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: apps}
---
apiVersion: tenancy.muster.dev/v1alpha1
kind: ClusterSetBinding
metadata: {namespace: apps, name: global}
spec: {clusterSetName: global}
---
apiVersion: placement.muster.dev/v1alpha1
kind: Placement
metadata: {namespace: apps, name: shop}
spec:
  policy:
    type: PickAll
    affinity: {required: [{labelSelector: {matchLabels: {%s}}}]}
---
apiVersion: placement.muster.dev/v1alpha1
kind: WorkSet
metadata: {namespace: apps, name: shop}
spec:
  placements: [{name: shop}]
  manifests:
  - {apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: %s}}
`, label, placedName))
}

// unplace deletes the objects that place has created.
func (p *procedure) unplace() {
	p.t.Helper()
	apps := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}
	require.NoError(p.t, p.onHub.Delete(p.t.Context(), apps))
	mustertest.Eventually(p.t, timeout, "the namespace apps is deleted", func() error {
		return checkDeleted(p.t, p.onHub, apps)
	})
}

// membersNamed returns the members with these names.
func (p *procedure) membersNamed(names ...string) (found []*procedureMember) {
	for _, name := range names {
		for _, m := range p.members {
			if m.name == name {
				found = append(found, m)
			}
		}
	}
	require.Len(p.t, found, len(names))
	return found
}

func placedObject() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: placedName}}
}

// waitForPlaced waits until the placed ConfigMap exists on members.
func (p *procedure) waitForPlaced(names ...string) {
	p.t.Helper()
	for _, m := range p.membersNamed(names...) {
		object := placedObject()
		mustertest.Eventually(p.t, timeout, "member "+m.name+" has ConfigMap "+placedName, func() error {
			return m.client.Get(p.t.Context(), client.ObjectKeyFromObject(object), object)
		})
	}
}

func (p *procedure) requireNotPlaced(names ...string) {
	p.t.Helper()
	for _, m := range p.membersNamed(names...) {
		require.NoError(p.t, checkDeleted(p.t, m.client, placedObject()), m.name)
	}
}

// checkDeleted returns nil if an object does not exist.
func checkDeleted(t *testing.T, c client.Client, object client.Object) error {
	err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(fmt.Errorf("%T %s exists", object, object.GetName()), err)
}

// requireLeft checks that a cluster contains no object of the hub after its member has left. Namespaces and
// definitions, which can contain objects of others, and the Lease of the agent may remain. The user's own object is
// unchanged.
func (p *procedure) requireLeft(m *procedureMember) {
	t := p.t
	t.Helper()
	if m.agent != nil {
		m.agent.stop()
	}
	require.NoError(t, checkDeleted(t, p.onHub, &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: m.name}}))
	require.NoError(t, checkDeleted(t, m.client, placedObject()))
	own := &corev1.ConfigMap{}
	require.NoError(t, m.client.Get(t.Context(), client.ObjectKeyFromObject(m.own), own))
	require.Equal(t, m.own.UID, own.UID)
	require.Equal(t, m.own.Data, own.Data)
	mustertest.Eventually(t, timeout, "member "+m.name+" has no object of the hub", func() error {
		after, err := m.sweep()
		if err != nil {
			return err
		}
		for object := range after.Difference(m.before) {
			kind, _, _ := strings.Cut(object, ".")
			if kind != "Namespace" && kind != "CustomResourceDefinition" && kind != "Lease" {
				return errors.New(object + " exists")
			}
		}
		return nil
	})
}

// tokenOf writes a kubeconfig with the token of a ServiceAccount on the hub, and returns the file.
func (p *procedure) tokenOf(account string) (file string) {
	t := p.t
	t.Helper()
	secret := &corev1.Secret{}
	mustertest.Eventually(t, timeout, "ServiceAccount "+account+" has a token", func() error {
		key := client.ObjectKey{Namespace: namespace, Name: account + "-token"}
		if err := p.onHub.Get(t.Context(), key, secret); err != nil {
			return err
		}
		if len(secret.Data[corev1.ServiceAccountTokenKey]) == 0 {
			return errors.New("the Secret has no token")
		}
		return nil
	})
	config := rest.AnonymousClientConfig(p.hub.Config())
	config.BearerToken = string(secret.Data[corev1.ServiceAccountTokenKey])
	content, err := localplane.Kubeconfig(config)
	require.NoError(t, err)
	file = filepath.Join(p.folder, account+".kubeconfig")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	return file
}
