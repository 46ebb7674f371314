package crds_test

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// Specs that the API server and WorkSpec.Validate must both reject, or both accept.

// refused is a spec with one mistake, and its error.
type refused struct {
	reason string
	spec   v1alpha1.WorkSpec
	field  string // the API server's; Validate may name one within it
	want   string
}

func manifest(text string) v1alpha1.Manifest {
	return v1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(text)}}
}

func of(manifests ...string) v1alpha1.WorkSpec {
	spec := v1alpha1.WorkSpec{Manifests: []v1alpha1.Manifest{}}
	for _, text := range manifests {
		spec.Manifests = append(spec.Manifests, manifest(text))
	}
	return spec
}

func configMaps(n int) v1alpha1.WorkSpec {
	var texts []string
	for i := range n {
		texts = append(texts,
			fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c%d", "namespace": "shop"}}`, i))
	}
	return of(texts...)
}

func with(change func(*v1alpha1.WorkSpec)) v1alpha1.WorkSpec {
	spec := configMaps(1)
	change(&spec)
	return spec
}

func option(change func(*v1alpha1.ManifestOption)) v1alpha1.WorkSpec {
	option := v1alpha1.ManifestOption{Select: v1alpha1.ManifestSelector{Kind: "ConfigMap"}}
	change(&option)
	return with(func(s *v1alpha1.WorkSpec) { s.ManifestOptions = []v1alpha1.ManifestOption{option} })
}

func feedback(rules ...v1alpha1.FeedbackRule) v1alpha1.WorkSpec {
	return option(func(o *v1alpha1.ManifestOption) { o.Feedback = rules })
}

func executor(namespace, name string) v1alpha1.WorkSpec {
	return with(func(s *v1alpha1.WorkSpec) { s.Executor = &v1alpha1.Executor{Namespace: namespace, Name: name} })
}

func times[T any](n int, entry func(i int) T) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = entry(i)
	}
	return list
}

var refusedSpecs = []refused{
	// Manifests.
	{
		"no list is a mistake, while an empty one takes everything back",
		v1alpha1.WorkSpec{}, "spec.manifests", "",
	},
	{
		"more than a status has room for",
		configMaps(v1alpha1.MaxManifests + 1), "spec.manifests", "must have at most 1000 items",
	},
	{
		"no object at all",
		of(`"kind: ConfigMap"`), "spec.manifests[0]", "",
	},
	{
		"which of several is wrong",
		of(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}`,
			`{"kind": "Namespace", "metadata": {"name": "b"}}`),
		"spec.manifests[1].apiVersion", "Required value",
	},
	{
		"a version of what",
		of(`{"apiVersion": "apps/v1/beta", "kind": "Deployment", "metadata": {"name": "a"}}`),
		"spec.manifests[0].apiVersion", "apps/v1/beta",
	},
	{
		"an API has many kinds",
		of(`{"apiVersion": "v1", "metadata": {"name": "a"}}`),
		"spec.manifests[0].kind", "Required value",
	},
	{
		"a kind is one word",
		of(`{"apiVersion": "apps/v1", "kind": "deployments.apps", "metadata": {"name": "a"}}`),
		"spec.manifests[0].kind", "deployments.apps",
	},
	{
		"nothing that tells it from others of its kind",
		of(`{"apiVersion": "v1", "kind": "Namespace"}`),
		"spec.manifests[0]", "metadata.name is required",
	},
	{
		"metadata without a name",
		of(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"labels": {"a": "b"}}}`),
		"spec.manifests[0]", "metadata.name is required",
	},
	{
		"an empty name is no name",
		of(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ""}}`),
		"spec.manifests[0]", "metadata.name is required",
	},
	{
		"another name each time, even beside a fixed one",
		of(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "generateName": "a-"}}`),
		"spec.manifests[0]", "metadata.generateName cannot be used",
	},
	{
		"a name is part of a URL",
		of(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a/b"}}`),
		"spec.manifests[0].metadata.name", "may not contain '/'",
	},
	{
		"a namespace has the name of one",
		of(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "My shop"}}`),
		"spec.manifests[0].metadata.namespace", "My shop",
	},
	{
		"labels that no object can have",
		of(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"two words": "a"}}}`),
		"spec.manifests[0].metadata.labels", "two words",
	},
	{
		"a Work that makes Works would never be done",
		of(`{"apiVersion": "work.muster.dev/v1alpha1", "kind": "Work", "metadata": {"name": "a", "namespace": "b"}}`),
		"spec.manifests[0]", "a Work cannot carry objects of work.muster.dev",
	},

	// How to apply them.
	{
		"a mode that does not exist",
		with(func(s *v1alpha1.WorkSpec) { s.Apply.Mode = "Update" }),
		"spec.apply.mode", `supported values: "ServerSideApply", "CreateOnly", "Observe", "ReportDiff"`,
	},
	{
		"a takeover that does not exist",
		with(func(s *v1alpha1.WorkSpec) { s.Apply.Takeover = "Sometimes" }),
		"spec.apply.takeover", `supported values: "Never", "IfNoDiff", "Always"`,
	},
	{
		"a way with drift that does not exist",
		with(func(s *v1alpha1.WorkSpec) { s.Apply.Drift = "Undo" }),
		"spec.apply.drift", `supported values: "Correct", "Report", "Ignore"`,
	},
	{
		"a way with additions that does not exist",
		with(func(s *v1alpha1.WorkSpec) { s.Apply.Additions = "Undo" }),
		"spec.apply.additions", `supported values: "Keep", "Report", "Remove"`,
	},
	{
		"a way with the additions to one that does not exist",
		option(func(o *v1alpha1.ManifestOption) { o.Additions = "Undo" }),
		"spec.manifestOptions[0].additions", "supported values",
	},
	{
		"field managers are shown in lists: a name that ends in a space looks like another one",
		with(func(s *v1alpha1.WorkSpec) { s.Apply.FieldOwner = "me " }),
		"spec.apply.fieldOwner", "me ",
	},
	{
		"longer than the API server lets a field manager be",
		with(func(s *v1alpha1.WorkSpec) { s.Apply.FieldOwner = strings.Repeat("a", 129) }),
		"spec.apply.fieldOwner", "128",
	},
	{
		"no time to become ready",
		with(func(s *v1alpha1.WorkSpec) { s.Waves.TimeoutSeconds = -1 }),
		"spec.waves.timeoutSeconds", "should be greater than or equal to 1",
	},
	{
		"longer than a day",
		with(func(s *v1alpha1.WorkSpec) { s.Waves.TimeoutSeconds = 86401 }),
		"spec.waves.timeoutSeconds", "should be less than or equal to 86400",
	},
	{
		"an end that does not exist",
		with(func(s *v1alpha1.WorkSpec) { s.Delete.Action = "Keep" }),
		"spec.delete.action", `supported values: "Delete", "Orphan"`,
	},
	{
		"orphaned dependents would be nobody's",
		with(func(s *v1alpha1.WorkSpec) { s.Delete.Propagation = metav1.DeletePropagationOrphan }),
		"spec.delete.propagation", `supported values: "Foreground", "Background"`,
	},
	{
		"deleted before it is done",
		with(func(s *v1alpha1.WorkSpec) { s.TTLSecondsAfterCompletion = new(int32(-1)) }),
		"spec.ttlSecondsAfterCompletion", "should be greater than or equal to 0",
	},
	{"who applies it lives in a namespace", executor("", "deployer"), "spec.executor.namespace", ""},
	{"who applies it has a name", executor("shop", ""), "spec.executor.name", ""},
	{"no such namespace can be", executor("shop.eu", "deployer"), "spec.executor.namespace", "shop.eu"},
	{"no such ServiceAccount can be", executor("shop", "system:masters"), "spec.executor.name", "system:masters"},
	{"longer than a namespace", executor(strings.Repeat("a", 64), "deployer"), "spec.executor.namespace", "63"},
	{"longer than a name", executor("shop", strings.Repeat("a", 254)), "spec.executor.name", "253"},

	// How to treat some of them.
	{
		"what is true of all goes into the spec",
		with(func(s *v1alpha1.WorkSpec) { s.ManifestOptions = []v1alpha1.ManifestOption{{}} }),
		"spec.manifestOptions[0].select", "should have at least 1 properties",
	},
	{
		"more options than anybody reads",
		with(func(s *v1alpha1.WorkSpec) {
			s.ManifestOptions = times(201, func(int) v1alpha1.ManifestOption {
				return v1alpha1.ManifestOption{Select: v1alpha1.ManifestSelector{Kind: "ConfigMap"}}
			})
		}),
		"spec.manifestOptions", "must have at most 200 items",
	},
	{
		"a mode of one that does not exist",
		option(func(o *v1alpha1.ManifestOption) { o.Mode = "Update" }),
		"spec.manifestOptions[0].mode", "supported values",
	},
	{
		"a takeover of one that does not exist",
		option(func(o *v1alpha1.ManifestOption) { o.Takeover = "Sometimes" }),
		"spec.manifestOptions[0].takeover", "supported values",
	},
	{
		"a way with the drift of one that does not exist",
		option(func(o *v1alpha1.ManifestOption) { o.Drift = "Undo" }),
		"spec.manifestOptions[0].drift", "supported values",
	},
	{
		"an end of one that does not exist",
		option(func(o *v1alpha1.ManifestOption) { o.Delete = "Keep" }),
		"spec.manifestOptions[0].delete", "supported values",
	},
	{
		"earlier than the first wave",
		option(func(o *v1alpha1.ManifestOption) { o.Wave = new(int32(-101)) }),
		"spec.manifestOptions[0].wave", "should be greater than or equal to -100",
	},
	{
		"later than the last wave",
		option(func(o *v1alpha1.ManifestOption) { o.Wave = new(int32(101)) }),
		"spec.manifestOptions[0].wave", "should be less than or equal to 100",
	},
	{
		"more fields than an apply would have left",
		option(func(o *v1alpha1.ManifestOption) {
			o.IgnoredFields = times(33, func(i int) string { return fmt.Sprintf(".data.f%d", i) })
		}),
		"spec.manifestOptions[0].ignoredFields", "must have at most 32 items",
	},
	{
		"a path that leads nowhere",
		option(func(o *v1alpha1.ManifestOption) { o.IgnoredFields = []string{"."} }),
		"spec.manifestOptions[0].ignoredFields[0]", "should be at least 2 chars long",
	},
	{
		"a path without an end",
		option(func(o *v1alpha1.ManifestOption) { o.IgnoredFields = []string{"." + strings.Repeat("a", 512)} }),
		"spec.manifestOptions[0].ignoredFields[0]", "512",
	},
	{
		"an empty rule",
		option(func(o *v1alpha1.ManifestOption) { o.Readiness = &v1alpha1.ReadinessRule{} }),
		"spec.manifestOptions[0].readiness.cel", "should be at least 1 chars long",
	},
	{
		"a program instead of a rule",
		option(func(o *v1alpha1.ManifestOption) {
			o.Readiness = &v1alpha1.ReadinessRule{CEL: strings.Repeat("!", 2048) + "true"}
		}),
		"spec.manifestOptions[0].readiness.cel", "2048",
	},
	{
		"a value without a name",
		feedback(v1alpha1.FeedbackRule{JSONPath: ".status.phase"}),
		"spec.manifestOptions[0].feedback[0].name", "",
	},
	{
		"a name that would not fit into a label or a column",
		feedback(v1alpha1.FeedbackRule{Name: "two words", JSONPath: ".status.phase"}),
		"spec.manifestOptions[0].feedback[0].name", "two words",
	},
	{
		"a name that is too long",
		feedback(v1alpha1.FeedbackRule{Name: strings.Repeat("a", 64), JSONPath: ".status.phase"}),
		"spec.manifestOptions[0].feedback[0].name", "63",
	},
	{
		"a value of nothing",
		feedback(v1alpha1.FeedbackRule{Name: "phase"}),
		"spec.manifestOptions[0].feedback[0].jsonPath", "should be at least 1 chars long",
	},
	{
		"a path of a value without an end",
		feedback(v1alpha1.FeedbackRule{Name: "phase", JSONPath: strings.Repeat(".a", 257)}),
		"spec.manifestOptions[0].feedback[0].jsonPath", "512",
	},
	{
		"two values of one name",
		feedback(v1alpha1.FeedbackRule{Name: "phase", JSONPath: ".a"}, v1alpha1.FeedbackRule{Name: "phase", JSONPath: ".b"}),
		"spec.manifestOptions[0].feedback[1]", "Duplicate value",
	},
	{
		"more values than a status has room for",
		feedback(times(17, func(i int) v1alpha1.FeedbackRule {
			return v1alpha1.FeedbackRule{Name: fmt.Sprintf("f%d", i), JSONPath: ".a"}
		})...),
		"spec.manifestOptions[0].feedback", "must have at most 16 items",
	},
}

var acceptedSpecs = map[string]v1alpha1.WorkSpec{
	"nothing is wanted any more":        of(),
	"as many manifests as there may be": configMaps(v1alpha1.MaxManifests),
	"the same name in another namespace": of(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", `+
		`"namespace": "b"}}`, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "c"}}`),
	"the same name in another group": of(`{"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a", `+
		`"namespace": "b"}}`, `{"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "a", "namespace": `+
		`"b"}}`),
	"a name that only some kinds allow": of(`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", ` +
		`"metadata": {"name": "system:A"}}`),
	"a kind that ends in List and is none": of(
		`{"apiVersion": "example.com/v1", "kind": "AllowList", "metadata": {"name": "a"}, "spec": {"items": []}}`),
	"an empty generateName, as typed objects write it": of(`{"apiVersion": "v1", "kind": "Namespace", "metadata": ` +
		`{"name": "a", "generateName": "", "creationTimestamp": null}, "status": {}}`),
	"a group that only begins like ours": of(`{"apiVersion": "work.muster.dev.example.com/v1", "kind": "Work", ` +
		`"metadata": {"name": "a"}}`),
	"a typed object": {Manifests: []v1alpha1.Manifest{
		{RawExtension: runtime.RawExtension{Object: &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "a"},
		}}}}},
	"every value that there is": {
		Manifests: configMaps(1).Manifests,
		Apply: v1alpha1.ApplyPolicy{Mode: v1alpha1.CreateOnly, Takeover: v1alpha1.TakeoverAlways,
			Drift: v1alpha1.DriftReport, KeepConflicts: true, FieldOwner: "my team"},
		ManifestOptions: []v1alpha1.ManifestOption{
			{
				Select: v1alpha1.ManifestSelector{Group: new(""), Kind: "ConfigMap", Namespace: "shop", Name: "c0"},
				Mode:   v1alpha1.ReportDiff, Takeover: v1alpha1.TakeoverIfNoDiff, Drift: v1alpha1.DriftCorrect,
				Delete:        v1alpha1.OrphanObject,
				IgnoredFields: []string{".data", `.metadata.annotations["example.com/note"]`},
				Readiness:     &v1alpha1.ReadinessRule{CEL: "true"},
				Feedback: []v1alpha1.FeedbackRule{{Name: "a", JSONPath: ".data.a"},
					{Name: "b_b.B-1", JSONPath: ".data.b"}},
				FeedbackWellKnown: true,
				Wave:              new(int32(-100)),
			},
			{Select: v1alpha1.ManifestSelector{Name: "nobody"}, Mode: v1alpha1.Observe},
		},
		Waves: v1alpha1.WavePolicy{WaitForReadiness: true, TimeoutSeconds: 86400},
		Delete: v1alpha1.DeletePolicy{Action: v1alpha1.OrphanObject,
			Propagation: metav1.DeletePropagationBackground},
		Executor:                  &v1alpha1.Executor{Namespace: "shop", Name: "deployer.of.shop"},
		TTLSecondsAfterCompletion: new(int32(0)),
		Suspend:                   true,
	},
}
