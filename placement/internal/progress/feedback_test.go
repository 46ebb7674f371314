package progress

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// reporting returns a Work that reports values.
func reporting(values ...Feedback) Work { return Work{Feedback: values} }

func value(kind workv1alpha1.FeedbackType, text string) Feedback {
	return Feedback{deployment("web"), "v", kind, text}
}

func numbers(texts ...string) (clusters []*Cluster) {
	for _, text := range texts {
		clusters = append(clusters, &Cluster{Works: []Work{reporting(value(workv1alpha1.FeedbackNumber, text))}})
	}
	return clusters
}

func TestFeedback_Summary(t *testing.T) {
	const number, text, boolean = workv1alpha1.FeedbackNumber, workv1alpha1.FeedbackString, workv1alpha1.FeedbackBoolean
	cluster := func(works ...Work) *Cluster { return &Cluster{Works: works} }
	counts := func(all ...any) (counts []v1alpha1.ValueCount) {
		for i := 0; i < len(all); i += 2 {
			counts = append(counts, v1alpha1.ValueCount{Value: all[i].(string), Clusters: int32(all[i+1].(int))})
		}
		return counts
	}
	for _, test := range []struct {
		reason   string
		clusters []*Cluster
		n        int32
		sum      string
		values   []v1alpha1.ValueCount
	}{
		{"whole numbers", numbers("3", "-1", "40"), 3, "42", nil},
		{"a sum of zero", numbers("0", "-0"), 2, "0", nil},
		{"the sum of decimal fractions is exact", numbers("0.1", "0.2", "0.3", "1"), 4, "1.6", nil},
		{"powers of ten", numbers("1e3", "2.5E-1", "1E+2"), 3, "1100.25", nil},
		{"a sum above the largest int64",
			numbers("9223372036854775807", "9223372036854775807", "-1"), 3, "18446744073709551613", nil},
		{"a sum below the smallest int64",
			numbers("-9223372036854775808", "-9223372036854775808"), 2, "-18446744073709551616", nil},
		{"a sum with many digits", numbers("123456789012345678901234567890.5", "0.5"), 2,
			"123456789012345678901234567891", nil},
		{"a number with a huge exponent is a text", numbers("1e999999999", "1"), 2, "",
			counts("1", 1, "1e999999999", 1)},
		{"a number with an exponent above the limit is a text", numbers("1e65", "1"), 2, "", counts("1", 1, "1e65", 1)},
		{"a number that JSON does not allow is a text", numbers("1/3", "1"), 2, "", counts("1", 1, "1/3", 1)},
		{"a number with too many digits is a text",
			numbers(strings.Repeat("9", 65)), 1, "", counts(strings.Repeat("9", 65), 1)},
		{"values of type Number that are not numbers are texts", numbers("1/3", "0x10", "Inf", "", "null", "1 "), 6, "",
			counts("", 1, "0x10", 1, "1 ", 1, "1/3", 1, "Inf", 1, "null", 1)},
		{
			"texts are sorted by frequency, then by value",
			[]*Cluster{cluster(reporting(value(text, "b"))), cluster(reporting(value(text, "c"))),
				cluster(reporting(value(text, "a"))), cluster(reporting(value(text, "c")))},
			4, "", counts("c", 2, "a", 1, "b", 1),
		},
		{
			"at most eight values are listed",
			func() (all []*Cluster) {
				for i := range 9 {
					all = append(all, cluster(reporting(value(text, fmt.Sprint(9-i)))))
				}
				return all
			}(),
			9, "", counts("1", 1, "2", 1, "3", 1, "4", 1, "5", 1, "6", 1, "7", 1, "8", 1),
		},
		{
			"values of different types have no sum",
			[]*Cluster{cluster(reporting(value(number, "1"))), cluster(reporting(value(boolean, "true"))),
				cluster(reporting(value(number, "1")))},
			3, "", counts("1", 2, "true", 1),
		},
		{
			"a number in two Works of a cluster is that of the first Work",
			[]*Cluster{cluster(reporting(value(number, "3")), reporting(value(number, "4"))),
				cluster(reporting(value(number, "5")))},
			2, "8", nil,
		},
		{
			"a text in two Works of a cluster is that of the first Work",
			[]*Cluster{cluster(reporting(value(text, "a")), reporting(value(text, "b")))},
			1, "", counts("a", 1),
		},
		{"a cluster without feedback is not part of the sum",
			[]*Cluster{cluster(), cluster(reporting(value(number, "2")))}, 1, "2", nil},
	} {
		t.Run(test.reason, func(t *testing.T) {
			want := []v1alpha1.FeedbackSummary{{ResourceIdentifier: deployment("web"), Value: "v", Clusters: test.n,
				Sum: test.sum, Values: test.values}}
			if diff := cmp.Diff(want, sumUp(test.clusters)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestFeedback_KeepsValuesOfMostClusters checks that a member that invents objects does not displace the values that
// all clusters report, even if its names sort first.
func TestFeedback_KeepsValuesOfMostClusters(t *testing.T) {
	var clusters []*Cluster
	for range 3 {
		clusters = append(clusters, &Cluster{Works: []Work{reporting(
			Feedback{deployment("web"), "ready", workv1alpha1.FeedbackNumber, "1"},
			Feedback{deployment("db"), "ready", workv1alpha1.FeedbackNumber, "1"},
		)}})
	}
	for i := range 100 {
		clusters[1].Works[0].Feedback = append(clusters[1].Works[0].Feedback,
			Feedback{deployment(fmt.Sprintf("a%02d", i)), "x", workv1alpha1.FeedbackNumber, "1"})
	}
	got := sumUp(clusters)
	require.Len(t, got, v1alpha1.MaxFeedbackSummaries)
	require.Equal(t, "a00", got[0].Name)
	require.Equal(t, []string{"a61", "db", "web"}, []string{got[61].Name, got[62].Name, got[63].Name}, "sorted by name")
	require.Equal(t, "3", got[63].Sum)
}

// TestFeedback_GroupedByObjectAndName checks that clusters need not report the same values in the same
// positions.
func TestFeedback_GroupedByObjectAndName(t *testing.T) {
	report := func(object, name string) *Cluster {
		return &Cluster{Works: []Work{reporting(Feedback{deployment(object), name, workv1alpha1.FeedbackNumber, "1"})}}
	}
	var got []string
	for _, one := range sumUp([]*Cluster{report("web", "ready"), report("db", "ready"), report("web", "all"),
		report("web", "ready"), report("web", "ready")}) {
		got = append(got, fmt.Sprintf("%s %s %s of %d", one.Name, one.Value, one.Sum, one.Clusters))
	}
	require.Equal(t, []string{"db ready 1 of 1", "web all 1 of 1", "web ready 3 of 3"}, got)
}

// TestFeedback_ReachableChosenClusters checks that the sum excludes clusters that are not chosen or are unreachable.
func TestFeedback_ReachableChosenClusters(t *testing.T) {
	report := func(name string, change func(*Cluster)) Cluster {
		return named(name, assigned(workWith(ready).with(func(w *Work) {
			w.Feedback = []Feedback{value(workv1alpha1.FeedbackNumber, "1")}
		}))).with(change)
	}
	o := Observed{Now: noon, Revision: "r2", Clusters: []Cluster{
		report("a", func(*Cluster) {}), report("b", unreachable), report("c", func(c *Cluster) { c.Chosen = false }),
		report("d", func(c *Cluster) { c.Revision = "r1" }),
	}}
	require.Equal(t, "2", Status(o).Feedback[0].Sum)
	o.Deleting = true
	require.Nil(t, Status(o).Feedback)
}

// TestSumIsExact compares a sum with exact arithmetic, for any order of the numbers.
func TestSumIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOf(rapid.OneOf(
			rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?`),
			rapid.Map(rapid.Int64(), func(n int64) string { return fmt.Sprint(n) }),
		)).Draw(t, "numbers")
		exact, forward, backward := new(big.Rat), sum{}, sum{}
		for i, text := range texts {
			if n, ok := new(big.Rat).SetString(text); forward.add(text) {
				if !ok {
					t.Fatalf("%q is not a number", text)
				}
				exact.Add(exact, n)
			}
			backward.add(texts[len(texts)-1-i])
		}
		got, ok := new(big.Rat).SetString(forward.String())
		if !ok || got.Cmp(exact) != 0 {
			t.Fatalf("the sum of %q is %s, want %s", texts, forward.String(), exact)
		}
		if forward.String() != backward.String() {
			t.Fatalf("the sum depends on the order: %s and %s", forward.String(), backward.String())
		}
	})
}

// FuzzNumber checks that any number of a member is parsed quickly, and that the result has at most a few hundred
// characters.
func FuzzNumber(f *testing.F) {
	for _, seed := range []string{"1", "-0", "1.5e3", "1e64", "1e-64", "1e999999999", "0x1p-2", "1/3", "9e9e9", "-",
		"1_000", " 1", "1\n", "1e+"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s sum
		if s.add(text) && len(s.String()) > maxNumber+2*maxExponent {
			t.Errorf("the sum of %q has %d characters", text, len(s.String()))
		}
	})
}
