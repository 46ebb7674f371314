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
	field  string // the field in the error of the API server; Validate may name a field within it
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
		"no manifests",
		v1alpha1.WorkSpec{}, "spec.manifests", "",
	},
	{
		"too many manifests",
		configMaps(v1alpha1.MaxManifests + 1), "spec.manifests", "must have at most 1000 items",
	},
	{
		"manifest is not an object",
		of(`"kind: ConfigMap"`), "spec.manifests[0]", "",
	},
	{
		"second manifest without apiVersion",
		of(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}`,
			`{"kind": "Namespace", "metadata": {"name": "b"}}`),
		"spec.manifests[1].apiVersion", "Required value",
	},
	{
		"apiVersion with two slashes",
		of(`{"apiVersion": "apps/v1/beta", "kind": "Deployment", "metadata": {"name": "a"}}`),
		"spec.manifests[0].apiVersion", "apps/v1/beta",
	},
	{
		"manifest without kind",
		of(`{"apiVersion": "v1", "metadata": {"name": "a"}}`),
		"spec.manifests[0].kind", "Required value",
	},
	{
		"kind with a dot",
		of(`{"apiVersion": "apps/v1", "kind": "deployments.apps", "metadata": {"name": "a"}}`),
		"spec.manifests[0].kind", "deployments.apps",
	},
	{
		"manifest without metadata",
		of(`{"apiVersion": "v1", "kind": "Namespace"}`),
		"spec.manifests[0]", "metadata.name is required",
	},
	{
		"metadata without a name",
		of(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"labels": {"a": "b"}}}`),
		"spec.manifests[0]", "metadata.name is required",
	},
	{
		"empty name",
		of(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ""}}`),
		"spec.manifests[0]", "metadata.name is required",
	},
	{
		"generateName next to a name",
		of(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "generateName": "a-"}}`),
		"spec.manifests[0]", "metadata.generateName cannot be used",
	},
	{
		"name with a slash",
		of(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a/b"}}`),
		"spec.manifests[0].metadata.name", "may not contain '/'",
	},
	{
		"namespace with a space",
		of(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "My shop"}}`),
		"spec.manifests[0].metadata.namespace", "My shop",
	},
	{
		"label key with a space",
		of(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"two words": "a"}}}`),
		"spec.manifests[0].metadata.labels", "two words",
	},
	{
		"manifest of a Work",
		of(`{"apiVersion": "work.muster.dev/v1alpha1", "kind": "Work", "metadata": {"name": "a", "namespace": "b"}}`),
		"spec.manifests[0]", "a Work cannot carry objects of work.muster.dev",
	},

	// Apply policies.
	{
		"unknown mode",
		with(func(s *v1alpha1.WorkSpec) { s.Apply.Mode = "Update" }),
		"spec.apply.mode", `supported values: "ServerSideApply", "CreateOnly", "Observe", "ReportDiff"`,
	},
	{
		"unknown takeover",
		with(func(s *v1alpha1.WorkSpec) { s.Apply.Takeover = "Sometimes" }),
		"spec.apply.takeover", `supported values: "Never", "IfNoDiff", "Always"`,
	},
	{
		"unknown drift policy",
		with(func(s *v1alpha1.WorkSpec) { s.Apply.Drift = "Undo" }),
		"spec.apply.drift", `supported values: "Correct", "Report", "Ignore"`,
	},
	{
		"unknown additions policy",
		with(func(s *v1alpha1.WorkSpec) { s.Apply.Additions = "Undo" }),
		"spec.apply.additions", `supported values: "Keep", "Report", "Remove"`,
	},
	{
		"unknown additions policy of an option",
		option(func(o *v1alpha1.ManifestOption) { o.Additions = "Undo" }),
		"spec.manifestOptions[0].additions", "supported values",
	},
	{
		"field owner that ends in a space",
		with(func(s *v1alpha1.WorkSpec) { s.Apply.FieldOwner = "me " }),
		"spec.apply.fieldOwner", "me ",
	},
	{
		"field owner is too long",
		with(func(s *v1alpha1.WorkSpec) { s.Apply.FieldOwner = strings.Repeat("a", 129) }),
		"spec.apply.fieldOwner", "128",
	},
	{
		"negative wave timeout",
		with(func(s *v1alpha1.WorkSpec) { s.Waves.TimeoutSeconds = -1 }),
		"spec.waves.timeoutSeconds", "should be greater than or equal to 1",
	},
	{
		"wave timeout longer than a day",
		with(func(s *v1alpha1.WorkSpec) { s.Waves.TimeoutSeconds = 86401 }),
		"spec.waves.timeoutSeconds", "should be less than or equal to 86400",
	},
	{
		"unknown delete action",
		with(func(s *v1alpha1.WorkSpec) { s.Delete.Action = "Keep" }),
		"spec.delete.action", `supported values: "Delete", "Orphan"`,
	},
	{
		"propagation Orphan",
		with(func(s *v1alpha1.WorkSpec) { s.Delete.Propagation = metav1.DeletePropagationOrphan }),
		"spec.delete.propagation", `supported values: "Foreground", "Background"`,
	},
	{
		"negative TTL",
		with(func(s *v1alpha1.WorkSpec) { s.TTLSecondsAfterCompletion = new(int32(-1)) }),
		"spec.ttlSecondsAfterCompletion", "should be greater than or equal to 0",
	},
	{"executor without a namespace", executor("", "deployer"), "spec.executor.namespace", ""},
	{"executor without a name", executor("shop", ""), "spec.executor.name", ""},
	{"executor namespace with a dot", executor("shop.eu", "deployer"), "spec.executor.namespace", "shop.eu"},
	{"executor name with a colon", executor("shop", "system:masters"), "spec.executor.name", "system:masters"},
	{"executor namespace is too long", executor(strings.Repeat("a", 64), "deployer"), "spec.executor.namespace", "63"},
	{"executor name is too long", executor("shop", strings.Repeat("a", 254)), "spec.executor.name", "253"},

	// Options for some manifests.
	{
		"option with an empty selector",
		with(func(s *v1alpha1.WorkSpec) { s.ManifestOptions = []v1alpha1.ManifestOption{{}} }),
		"spec.manifestOptions[0].select", "should have at least 1 properties",
	},
	{
		"too many options",
		with(func(s *v1alpha1.WorkSpec) {
			s.ManifestOptions = times(201, func(int) v1alpha1.ManifestOption {
				return v1alpha1.ManifestOption{Select: v1alpha1.ManifestSelector{Kind: "ConfigMap"}}
			})
		}),
		"spec.manifestOptions", "must have at most 200 items",
	},
	{
		"unknown mode of an option",
		option(func(o *v1alpha1.ManifestOption) { o.Mode = "Update" }),
		"spec.manifestOptions[0].mode", "supported values",
	},
	{
		"unknown takeover of an option",
		option(func(o *v1alpha1.ManifestOption) { o.Takeover = "Sometimes" }),
		"spec.manifestOptions[0].takeover", "supported values",
	},
	{
		"unknown drift policy of an option",
		option(func(o *v1alpha1.ManifestOption) { o.Drift = "Undo" }),
		"spec.manifestOptions[0].drift", "supported values",
	},
	{
		"unknown delete action of an option",
		option(func(o *v1alpha1.ManifestOption) { o.Delete = "Keep" }),
		"spec.manifestOptions[0].delete", "supported values",
	},
	{
		"wave below the minimum",
		option(func(o *v1alpha1.ManifestOption) { o.Wave = new(int32(-101)) }),
		"spec.manifestOptions[0].wave", "should be greater than or equal to -100",
	},
	{
		"wave above the maximum",
		option(func(o *v1alpha1.ManifestOption) { o.Wave = new(int32(101)) }),
		"spec.manifestOptions[0].wave", "should be less than or equal to 100",
	},
	{
		"too many ignored fields",
		option(func(o *v1alpha1.ManifestOption) {
			o.IgnoredFields = times(33, func(i int) string { return fmt.Sprintf(".data.f%d", i) })
		}),
		"spec.manifestOptions[0].ignoredFields", "must have at most 32 items",
	},
	{
		"ignored field without a name",
		option(func(o *v1alpha1.ManifestOption) { o.IgnoredFields = []string{"."} }),
		"spec.manifestOptions[0].ignoredFields[0]", "should be at least 2 chars long",
	},
	{
		"ignored field is too long",
		option(func(o *v1alpha1.ManifestOption) { o.IgnoredFields = []string{"." + strings.Repeat("a", 512)} }),
		"spec.manifestOptions[0].ignoredFields[0]", "512",
	},
	{
		"empty readiness rule",
		option(func(o *v1alpha1.ManifestOption) { o.Readiness = &v1alpha1.ReadinessRule{} }),
		"spec.manifestOptions[0].readiness.cel", "should be at least 1 chars long",
	},
	{
		"readiness rule is too long",
		option(func(o *v1alpha1.ManifestOption) {
			o.Readiness = &v1alpha1.ReadinessRule{CEL: strings.Repeat("!", 2048) + "true"}
		}),
		"spec.manifestOptions[0].readiness.cel", "2048",
	},
	{
		"feedback without a name",
		feedback(v1alpha1.FeedbackRule{JSONPath: ".status.phase"}),
		"spec.manifestOptions[0].feedback[0].name", "",
	},
	{
		"feedback name with a space",
		feedback(v1alpha1.FeedbackRule{Name: "two words", JSONPath: ".status.phase"}),
		"spec.manifestOptions[0].feedback[0].name", "two words",
	},
	{
		"feedback name is too long",
		feedback(v1alpha1.FeedbackRule{Name: strings.Repeat("a", 64), JSONPath: ".status.phase"}),
		"spec.manifestOptions[0].feedback[0].name", "63",
	},
	{
		"feedback without a path",
		feedback(v1alpha1.FeedbackRule{Name: "phase"}),
		"spec.manifestOptions[0].feedback[0].jsonPath", "should be at least 1 chars long",
	},
	{
		"feedback path is too long",
		feedback(v1alpha1.FeedbackRule{Name: "phase", JSONPath: strings.Repeat(".a", 257)}),
		"spec.manifestOptions[0].feedback[0].jsonPath", "512",
	},
	{
		"duplicate feedback names",
		feedback(v1alpha1.FeedbackRule{Name: "phase", JSONPath: ".a"}, v1alpha1.FeedbackRule{Name: "phase", JSONPath: ".b"}),
		"spec.manifestOptions[0].feedback[1]", "Duplicate value",
	},
	{
		"too many feedback rules",
		feedback(times(17, func(i int) v1alpha1.FeedbackRule {
			return v1alpha1.FeedbackRule{Name: fmt.Sprintf("f%d", i), JSONPath: ".a"}
		})...),
		"spec.manifestOptions[0].feedback", "must have at most 16 items",
	},
}

var acceptedSpecs = map[string]v1alpha1.WorkSpec{
	"empty list of manifests":     of(),
	"maximum number of manifests": configMaps(v1alpha1.MaxManifests),
	"same name in another namespace": of(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", `+
		`"namespace": "b"}}`, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "c"}}`),
	"same name in another group": of(`{"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a", `+
		`"namespace": "b"}}`, `{"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "a", "namespace": `+
		`"b"}}`),
	"name with a colon of a ClusterRole": of(`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", ` +
		`"metadata": {"name": "system:A"}}`),
	"kind that ends in List and is not a list": of(
		`{"apiVersion": "example.com/v1", "kind": "AllowList", "metadata": {"name": "a"}, "spec": {"items": []}}`),
	"empty generateName of a typed object": of(`{"apiVersion": "v1", "kind": "Namespace", "metadata": ` +
		`{"name": "a", "generateName": "", "creationTimestamp": null}, "status": {}}`),
	"group with the prefix work.muster.dev": of(`{"apiVersion": "work.muster.dev.example.com/v1", "kind": "Work", ` +
		`"metadata": {"name": "a"}}`),
	"typed object": {Manifests: []v1alpha1.Manifest{
		{RawExtension: runtime.RawExtension{Object: &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "a"},
		}}}}},
	"all fields set": {
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
