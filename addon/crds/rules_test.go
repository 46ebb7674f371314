package crds_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/crdinstall/crdtest"
)

// Specs that the API server and Validate must both reject, or both accept.

// rule is one invalid value with its error, and a similar valid value. Both replace fields of a minimal spec.
type rule struct {
	reason         string
	invalid, valid string
	field          string // below spec; Validate may name one within it
	want           string // message of both; empty if the API server shows only a pattern
}

// kind is a kind of the definitions.
type kind struct {
	name, resource, namespace string
	minimal                   string // spec
	rules                     []rule // of the API server and Validate
	// missing has specs that only the API server can reject, by field: Go programs omit or cannot decode the field.
	missing map[string]string
	decode  func(t *testing.T, object *unstructured.Unstructured) (client.Object, func() field.ErrorList)
}

func kinds() []kind {
	return []kind{
		{
			"Addon",
			"addons",
			"",
			`{}`,
			addonRules(),
			missingOfAddons,
			func(t *testing.T, o *unstructured.Unstructured) (client.Object, func() field.ErrorList) {
				typed := decoded(t, o, &v1alpha1.Addon{})
				return typed, typed.Spec.Validate
			},
		},
		{
			"MemberAddon",
			"memberaddons",
			"default",
			`{}`,
			memberAddonRules(),
			missingOfMemberAddons,
			func(t *testing.T, o *unstructured.Unstructured) (client.Object, func() field.ErrorList) {
				typed := decoded(t, o, &v1alpha1.MemberAddon{})
				return typed, typed.Spec.Validate
			},
		},
		{
			"AddonConfig",
			"addonconfigs",
			"default",
			`{}`,
			configRules,
			missingOfConfigs,
			func(t *testing.T, o *unstructured.Unstructured) (client.Object, func() field.ErrorList) {
				typed := decoded(t, o, &v1alpha1.AddonConfig{})
				return typed, typed.Spec.Validate
			},
		},
		{
			"AddonTemplate",
			"addontemplates",
			"",
			`{manifests: [` + configMap + `]}`,
			templateRules,
			missingOfTemplates,
			func(t *testing.T, o *unstructured.Unstructured) (client.Object, func() field.ErrorList) {
				typed := decoded(t, o, &v1alpha1.AddonTemplate{})
				return typed, typed.Spec.Validate
			},
		},
	}
}

// object returns a minimal object with some fields of its spec replaced.
func (k *kind) object(t *testing.T, fields string) *unstructured.Unstructured {
	t.Helper()
	spec, other := map[string]any{}, map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(k.minimal), &spec))
	require.NoError(t, yaml.Unmarshal([]byte("{"+fields+"}"), &other), fields)
	maps.Copy(spec, other)
	maps.DeleteFunc(spec, func(_ string, value any) bool { return value == nil })
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(k.name))
	object.SetNamespace(k.namespace)
	object.SetName("metrics")
	return object
}

// decoded returns an object as a Go type, which must have all fields of the YAML.
func decoded[T client.Object](t *testing.T, object *unstructured.Unstructured, into T) T {
	t.Helper()
	text, err := object.MarshalJSON()
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, into), string(text))
	return into
}

func (k *kind) validated(t *testing.T, object *unstructured.Unstructured) []crdtest.Complaint {
	t.Helper()
	_, validate := k.decode(t, object)
	return first(crdtest.Validated(validate()))
}

func complaintsOf(t *testing.T, err error) []crdtest.Complaint {
	t.Helper()
	// A field that is a number or a string can violate the rules of both.
	return first(
		slices.CompactFunc(crdtest.Complaints(t, err), func(a, b crdtest.Complaint) bool { return a.Field == b.Field }),
	)
}

// first drops the complaint that a kind is not declared by the Addon if the kind is invalid itself.
func first(found []crdtest.Complaint) []crdtest.Complaint {
	if len(found) < 2 {
		return found
	}
	return slices.DeleteFunc(found, func(c crdtest.Complaint) bool {
		return strings.Contains(c.Message, "the kinds of all configs must be among")
	})
}

// list returns a list in YAML, of entries with a number in them.
func list(n int, entry string) string {
	return "[" + strings.Join(
		times(n, func(i int) string { return strings.ReplaceAll(entry, "#", fmt.Sprint(i)) }),
		", ",
	) + "]"
}

func times[T any](n int, entry func(i int) T) []T {
	made := make([]T, n)
	for i := range made {
		made[i] = entry(i)
	}
	return made
}

func as(n int) string { return strings.Repeat("a", n) }

func below(name string) string { return strings.TrimSuffix("spec."+name, ".") }

// TestValidate checks that each rule rejects invalid values, once and at the invalid field, and accepts valid values
// at the limit.
func TestValidate(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			for _, test := range k.rules {
				got := k.validated(t, k.object(t, test.invalid))
				crdtest.One(t, test.reason, crdtest.Complaint{Field: below(test.field), Message: test.want}, got)
				if got := k.validated(t, k.object(t, test.valid)); len(got) > 0 {
					t.Errorf("%s: want no error for the valid value, got %+v", test.reason, got)
				}
			}
		})
	}
}

// TestAPIServerAgrees checks the same for the API server, and that each rule of the definitions is violated by a
// test.
func TestAPIServerAgrees(t *testing.T) {
	c := installed(t)
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			var rejected []crdtest.Complaint
			for _, test := range k.rules {
				rejected = append(rejected, k.bothReject(t, c, test)...)
				k.bothAccept(t, c, test.reason+", valid", test.valid)
			}
			for _, rule := range crdtest.Rules(t, c, k.resource+".addon.muster.dev") {
				_, ofMissing := k.missing[strings.ReplaceAll(strings.TrimPrefix(rule.Field, "spec."), "[]", "[0]")]
				if !ofMissing && !rule.BrokenBy(rejected) {
					t.Errorf("no case violates this rule: %+v", rule)
				}
			}
		})
	}
}

// bothReject requires that the API server and Validate reject an object alike, and returns the complaints.
func (k *kind) bothReject(t *testing.T, c client.Client, test rule) []crdtest.Complaint {
	t.Helper()
	object := k.object(t, test.invalid)
	fromValidate := k.validated(t, object)
	err := c.Create(t.Context(), object, client.DryRunAll)
	if !apierrors.IsInvalid(err) {
		t.Errorf("%s: want the API server to reject the object, got %v", test.reason, err)
		return nil
	}
	got := complaintsOf(t, err)
	if len(got) != 1 || got[0].Field != below(test.field) || !strings.Contains(got[0].Message, test.want) {
		t.Errorf("%s: want one error for %s with %q, got %+v", test.reason, below(test.field), test.want, got)
	} else if len(fromValidate) > 0 && got[0].Kind != fromValidate[0].Kind {
		t.Errorf("%s: want equal types of errors, got %s from the API server and %s from Validate", test.reason, got[0].Kind,
			fromValidate[0].Kind)
	}
	return got
}

// bothAccept requires that the API server accepts an object, and that Validate accepts the stored object.
func (k *kind) bothAccept(t *testing.T, c client.Client, reason, fields string) {
	t.Helper()
	object := k.object(t, fields)
	if err := c.Create(t.Context(), object, client.DryRunAll); err != nil {
		t.Errorf("%s: API server: unexpected error: %v", reason, err)
	} else if fromValidate := k.validated(t, object); len(fromValidate) > 0 {
		t.Errorf("%s: Validate of the object with defaults: unexpected errors: %+v", reason, fromValidate)
	}
}

func TestAPIServer_RequiredFields(t *testing.T) {
	c := installed(t)
	for _, k := range kinds() {
		for name, invalid := range k.missing {
			err := c.Create(t.Context(), k.object(t, invalid), client.DryRunAll)
			if !apierrors.IsInvalid(err) {
				t.Errorf("%s, %s: want the API server to reject the object, got %v", k.name, invalid, err)
			} else if fromServer := complaintsOf(t, err); len(fromServer) != 1 || fromServer[0].Field != "spec."+name {
				t.Errorf("%s, %s: want one error for %s, got %+v", k.name, invalid, name, fromServer)
			}
		}
	}
}
