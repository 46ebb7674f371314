package progress

import (
	"cmp"
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

const (
	maxValues   = 8  // the maximum in the API
	maxNumber   = 64 // bytes; a longer text is not added up
	maxExponent = 64
)

// tally is one feedback value over all clusters.
type tally struct {
	key
	clusters int32
	last     int // the index of the last counted cluster
	sum      sum
	mixed    bool // not all values are numbers
	counts   map[string]int32
}

// tallies contains all values. Most clusters report the same values in the same order, so the position of a value is
// used as a guess of its key.
type tallies struct {
	byKey   map[key]*tally
	byPlace []*tally
}

func (t *tallies) of(f *Feedback, place int) *tally {
	for place >= len(t.byPlace) {
		t.byPlace = append(t.byPlace, nil)
	}
	if guess := t.byPlace[place]; guess != nil && guess.value == f.Name &&
		guess.ResourceIdentifier == f.ResourceIdentifier {
		return guess
	}
	k := f.key()
	found := t.byKey[k]
	if found == nil {
		found = &tally{key: k, last: -1}
		t.byKey[k] = found
	}
	t.byPlace[place] = found
	return found
}

// each calls f for each value, once for each cluster: an object that moves from one Work to another is in both for a
// while.
func (t *tallies) each(clusters []*Cluster, f func(*tally, *Feedback)) {
	for _, one := range t.byKey {
		one.last = -1
	}
	for i, c := range clusters {
		place := 0
		for j := range c.Works {
			for k := range c.Works[j].Feedback {
				value := &c.Works[j].Feedback[k]
				if one := t.of(value, place); one.last != i {
					one.last = i
					f(one, value)
				}
				place++
			}
		}
	}
}

// sumUp aggregates the feedback of the members. If there are more values than a status may have, it keeps those that
// most clusters report.
func sumUp(clusters []*Cluster) []v1alpha1.FeedbackSummary {
	t := &tallies{byKey: map[key]*tally{}}
	mixed := false
	t.each(clusters, func(one *tally, f *Feedback) {
		one.clusters++
		if !one.mixed && (f.Type != workv1alpha1.FeedbackNumber || !one.sum.add(f.Value)) {
			one.mixed, mixed = true, true
		}
	})
	chosen := make([]*tally, 0, len(t.byKey))
	for _, one := range t.byKey {
		chosen = append(chosen, one)
	}
	inOrder := func(a, b *tally) int { return a.compare(b.key) }
	if len(chosen) > v1alpha1.MaxFeedbackSummaries {
		slices.SortFunc(chosen, func(a, b *tally) int { return cmp.Or(cmp.Compare(b.clusters, a.clusters), inOrder(a, b)) })
		chosen = chosen[:v1alpha1.MaxFeedbackSummaries]
	}
	slices.SortFunc(chosen, inOrder)
	if mixed {
		for _, one := range chosen {
			if one.mixed {
				one.counts = map[string]int32{}
			}
		}
		t.each(clusters, func(one *tally, f *Feedback) {
			if one.counts != nil {
				one.counts[f.Value]++
			}
		})
	}
	var summaries []v1alpha1.FeedbackSummary
	for _, one := range chosen {
		summary := v1alpha1.FeedbackSummary{ResourceIdentifier: one.ResourceIdentifier, Value: one.value,
			Clusters: one.clusters}
		if one.mixed {
			summary.Values = one.frequent()
		} else {
			summary.Sum = one.sum.String()
		}
		summaries = append(summaries, summary)
	}
	return summaries
}

// frequent returns the values that most clusters report.
func (t *tally) frequent() []v1alpha1.ValueCount {
	all := make([]v1alpha1.ValueCount, 0, len(t.counts))
	for value, n := range t.counts {
		all = append(all, v1alpha1.ValueCount{Value: value, Clusters: n})
	}
	slices.SortFunc(all, func(a, b v1alpha1.ValueCount) int {
		return cmp.Or(cmp.Compare(b.Clusters, a.Clusters), strings.Compare(a.Value, b.Value))
	})
	return slices.Clone(all[:min(len(all), maxValues)])
}

// sum is an exact sum of decimal numbers. Nearly all of them are small integers, which are added without big.Rat.
type sum struct {
	whole int64
	rest  *big.Rat
}

// add adds a number, and reports whether the text is a number that can be added.
func (s *sum) add(text string) bool {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if total := s.whole + n; (total > s.whole) == (n > 0) {
			s.whole = total
			return true
		}
	}
	n, ok := number(text)
	if !ok {
		return false
	}
	if s.rest == nil {
		s.rest = new(big.Rat)
	}
	s.rest.Add(s.rest, n)
	return true
}

// number parses a number in JSON syntax. It rejects numbers whose decimal form would be long, because members are not
// trusted.
func number(text string) (*big.Rat, bool) {
	if len(text) > maxNumber || strings.IndexAny(text, "-0123456789") != 0 || !json.Valid([]byte(text)) {
		return nil, false
	}
	if e := strings.IndexAny(text, "eE"); e >= 0 {
		exponent, err := strconv.Atoi(text[e+1:])
		if err != nil || exponent < -maxExponent || exponent > maxExponent {
			return nil, false
		}
	}
	return new(big.Rat).SetString(text)
}

func (s *sum) String() string {
	if s.rest == nil {
		return strconv.FormatInt(s.whole, 10)
	}
	total := new(big.Rat).SetInt64(s.whole)
	total.Add(total, s.rest)
	digits, _ := total.FloatPrec() // all digits: a sum of decimal numbers is a finite decimal
	return total.FloatString(digits)
}
