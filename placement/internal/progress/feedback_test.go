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

func feeding(values ...Feedback) Work { return Work{Feedback: values} }

func value(kind workv1alpha1.FeedbackType, text string) Feedback {
	return Feedback{deployment("web"), "v", kind, text}
}

func numbers(texts ...string) (clusters []*Cluster) {
	for _, text := range texts {
		clusters = append(clusters, &Cluster{Works: []Work{feeding(value(workv1alpha1.FeedbackNumber, text))}})
	}
	return clusters
}

func TestFeedbackIsSummedUp(t *testing.T) {
	const number, text, boolean = workv1alpha1.FeedbackNumber, workv1alpha1.FeedbackString, workv1alpha1.FeedbackBoolean
	one := func(works ...Work) *Cluster { return &Cluster{Works: works} }
	counts := func(all ...any) (made []v1alpha1.ValueCount) {
		for i := 0; i < len(all); i += 2 {
			made = append(made, v1alpha1.ValueCount{Value: all[i].(string), Clusters: int32(all[i+1].(int))})
		}
		return made
	}
	for _, test := range []struct {
		reason   string
		clusters []*Cluster
		n        int32
		sum      string
		values   []v1alpha1.ValueCount
	}{
		{"whole numbers", numbers("3", "-1", "40"), 3, "42", nil},
		{"zero is a sum as well", numbers("0", "-0"), 2, "0", nil},
		{"tenths do not drift", numbers("0.1", "0.2", "0.3", "1"), 4, "1.6", nil},
		{"powers of ten", numbers("1e3", "2.5E-1", "1E+2"), 3, "1100.25", nil},
		{"sums do not run over", numbers("9223372036854775807", "9223372036854775807", "-1"), 3, "18446744073709551613", nil},
		{"nor under", numbers("-9223372036854775808", "-9223372036854775808"), 2, "-18446744073709551616", nil},
		{"many digits are not lost", numbers("123456789012345678901234567890.5", "0.5"), 2,
			"123456789012345678901234567891", nil},
		{"a number that would take a book to write down is a text", numbers("1e999999999", "1"), 2, "",
			counts("1", 1, "1e999999999", 1)},
		{"so is one of which nobody could say what it is", numbers("1e65", "1"), 2, "", counts("1", 1, "1e65", 1)},
		{"and what is a number elsewhere, but not in JSON", numbers("1/3", "1"), 2, "", counts("1", 1, "1/3", 1)},
		{"so is one with many digits", numbers(strings.Repeat("9", 65)), 1, "", counts(strings.Repeat("9", 65), 1)},
		{"what says that it is a number is not believed", numbers("1/3", "0x10", "Inf", "", "null", "1 "), 6, "",
			counts("", 1, "0x10", 1, "1 ", 1, "1/3", 1, "Inf", 1, "null", 1)},
		{
			"texts: the most frequent first, then by value",
			[]*Cluster{one(feeding(value(text, "b"))), one(feeding(value(text, "c"))), one(feeding(value(text, "a"))),
				one(feeding(value(text, "c")))},
			4, "", counts("c", 2, "a", 1, "b", 1),
		},
		{
			"no more than eight",
			func() (all []*Cluster) {
				for i := range 9 {
					all = append(all, one(feeding(value(text, fmt.Sprint(9-i)))))
				}
				return all
			}(),
			9, "", counts("1", 1, "2", 1, "3", 1, "4", 1, "5", 1, "6", 1, "7", 1, "8", 1),
		},
		{
			"of different types: no sum of some of them",
			[]*Cluster{one(feeding(value(number, "1"))), one(feeding(value(boolean, "true"))), one(feeding(value(number, "1")))},
			3, "", counts("1", 2, "true", 1),
		},
		{
			"an object that moves is in two Works of a cluster, and counts once: by the first",
			[]*Cluster{one(feeding(value(number, "3")), feeding(value(number, "4"))), one(feeding(value(number, "5")))},
			2, "8", nil,
		},
		{
			"as much where it is a text",
			[]*Cluster{one(feeding(value(text, "a")), feeding(value(text, "b")))},
			1, "", counts("a", 1),
		},
		{"who has nothing to report is not counted", []*Cluster{one(), one(feeding(value(number, "2")))}, 1, "2", nil},
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

// TestFeedbackOfMostStays checks that a member that invents objects does not displace the values that all clusters
// report, even if its names sort first.
func TestFeedbackOfMostStays(t *testing.T) {
	var clusters []*Cluster
	for range 3 {
		clusters = append(clusters, &Cluster{Works: []Work{feeding(
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
	require.Equal(t, []string{"a61", "db", "web"}, []string{got[61].Name, got[62].Name, got[63].Name}, "in order")
	require.Equal(t, "3", got[63].Sum)
}

// TestFeedback_GroupedByObjectAndName checks that the position of a value is only a guess: clusters need not report the
// same values.
func TestFeedback_GroupedByObjectAndName(t *testing.T) {
	report := func(object, name string) *Cluster {
		return &Cluster{Works: []Work{feeding(Feedback{deployment(object), name, workv1alpha1.FeedbackNumber, "1"})}}
	}
	var got []string
	for _, one := range sumUp([]*Cluster{report("web", "ready"), report("db", "ready"), report("web", "all"),
		report("web", "ready"), report("web", "ready")}) {
		got = append(got, fmt.Sprintf("%s %s %s of %d", one.Name, one.Value, one.Sum, one.Clusters))
	}
	require.Equal(t, []string{"db ready 1 of 1", "web all 1 of 1", "web ready 3 of 3"}, got)
}

// TestFeedbackIsOfThoseThatReport checks that clusters that are not chosen or cannot be reached are not added up.
func TestFeedbackIsOfThoseThatReport(t *testing.T) {
	report := func(name string, change func(*Cluster)) Cluster {
		return named(name, assigned(says(allWell).but(func(w *Work) {
			w.Feedback = []Feedback{value(workv1alpha1.FeedbackNumber, "1")}
		}))).but(change)
	}
	o := Observed{Now: noon, Revision: "r2", Clusters: []Cluster{
		report("a", func(*Cluster) {}), report("b", outOfReach), report("c", func(c *Cluster) { c.Chosen = false }),
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
		exact, forth, back := new(big.Rat), sum{}, sum{}
		for i, text := range texts {
			if n, ok := new(big.Rat).SetString(text); forth.add(text) {
				if !ok {
					t.Fatalf("%q is no number", text)
				}
				exact.Add(exact, n)
			}
			back.add(texts[len(texts)-1-i])
		}
		got, ok := new(big.Rat).SetString(forth.String())
		if !ok || got.Cmp(exact) != 0 {
			t.Fatalf("the sum of %q is %s, want %s", texts, forth.String(), exact)
		}
		if forth.String() != back.String() {
			t.Fatalf("%s one way, and %s the other", forth.String(), back.String())
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
			t.Errorf("%q is %d characters long", text, len(s.String()))
		}
	})
}
