package addon_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// strategies is a hub whose controllers can be restarted.
type strategies struct {
	*hub
	*running
	options addon.Options
}

func (s *strategies) restart() {
	s.stop()
	s.begin()
}

func (s *strategies) begin() {
	s.running = s.start(s.options)
}

// settles waits until nothing is written any more.
func (s *strategies) settles() { s.t.Helper(); s.quiet(s.t) }

// TestStrategies checks the tables of package install, row by row. Each row has a separate add-on and Placements with
// the name of the row, and the members in its list.
func TestStrategies(t *testing.T) { testkit.Virtual(t, testStrategies) }

func testStrategies(t *testing.T) {
	rows := []struct {
		name, reason string
		members      []string
		do           func(s *strategies)
	}{
		{"manual", "nobody but who has asked for it has it, and as the defaults have it", []string{"a", "b"},
			func(s *strategies) {
				s.addon("manual", nil)
				s.own("manual", "manual-a", nil)
				s.has("manual", "manual-a", "")
				s.settles()
				require.Empty(s.t, s.installedBy("manual", "manual-a"))
				require.Nil(s.t, s.memberAddon("manual", "manual-b"))
			}},
		{"chosen", "it comes and goes with the choice", []string{"a", "b"}, func(s *strategies) {
			s.choose("chosen-1", "chosen-a")
			s.addon("chosen", s.by("chosen-1"))
			s.has("chosen", "chosen-a", "chosen-1")
			require.Equal(s.t, s.namespace+"/chosen-1", s.installedBy("chosen", "chosen-a"))
			s.goesBy("chosen", "chosen-a", "chosen-1")
			s.choose("chosen-1", "chosen-b")
			s.has("chosen", "chosen-b", "chosen-1")
			s.hasNot("chosen", "chosen-a")
		}},
		{"byhand",
			"what a person has made is kept, and has the Placement's configuration as long as that has chosen its member",
			[]string{"a", "b"}, func(s *strategies) {
				s.choose("byhand-1", "byhand-b")
				s.addon("byhand", s.by("byhand-1"))
				s.own("byhand", "byhand-a", nil)
				s.has("byhand", "byhand-a", "")
				s.has("byhand", "byhand-b", "byhand-1")
				s.choose("byhand-1", "byhand-a", "byhand-b")
				s.has("byhand", "byhand-a", "byhand-1")
				require.Empty(s.t, s.installedBy("byhand", "byhand-a"))
				s.goesBy("byhand", "byhand-a", "byhand-1")
				s.choose("byhand-1", "byhand-b")
				s.has("byhand", "byhand-a", "")
				s.goesBy("byhand", "byhand-a", "")
			}},
		{"mine", "who takes the annotation off makes it his own", []string{"a"}, func(s *strategies) {
			s.choose("mine-1", "mine-a")
			s.addon("mine", s.by("mine-1"))
			s.has("mine", "mine-a", "mine-1")
			m := s.memberAddon("mine", "mine-a")
			before := m.DeepCopy()
			delete(m.Annotations, v1alpha1.InstalledByAnnotation)
			require.NoError(s.t, s.client.Patch(s.t.Context(), m, client.MergeFrom(before)))
			s.choose("mine-1")
			s.has("mine", "mine-a", "")
			require.Equal(s.t, m.UID, s.memberAddon("mine", "mine-a").UID)
		}},
		{"first", "of several Placements the first in the list counts, whoever was there before", []string{"a", "b"},
			func(s *strategies) {
				s.choose("first-1", "first-a")
				s.choose("first-2", "first-a", "first-b")
				s.addon("first", s.by("first-1", "first-2"))
				s.has("first", "first-a", "first-1")
				s.has("first", "first-b", "first-2")
				was := s.memberAddon("first", "first-b").UID
				s.choose("first-1", "first-a", "first-b")
				s.has("first", "first-b", "first-1")
				require.Equal(s.t, s.namespace+"/first-1", s.installedBy("first", "first-b"))
				require.Equal(s.t, was, s.memberAddon("first", "first-b").UID, "it is the same one")
				s.choose("first-1", "first-b")
				s.has("first", "first-a", "first-2")
				require.Equal(s.t, s.namespace+"/first-2", s.installedBy("first", "first-a"))
			}},
		{"missing", "a Placement that is not there for a moment takes nothing, and hands nothing over",
			[]string{"a", "b", "c"}, func(s *strategies) {
				s.choose("missing-1", "missing-a", "missing-b", "missing-c")
				s.choose("missing-2", "missing-a", "missing-c")
				s.own("missing", "missing-c", nil)
				s.addon("missing", s.by("missing-1", "missing-2"))
				all := []string{"missing-a", "missing-b", "missing-c"}
				for _, m := range all {
					s.has("missing", m, "missing-1")
				}
				stay := func(when string) {
					s.settles()
					for _, m := range all {
						require.Equal(s.t, "missing-1", s.colorOf("missing", m), "%s: %s", m, when)
						require.Equal(s.t, s.namespace+"/missing-1", s.memberAddon("missing", m).Status.Placement, "%s: %s", m, when)
					}
					degraded := meta.FindStatusCondition(s.get("missing").Status.Conditions, v1alpha1.ConditionDegraded)
					require.Equal(s.t, v1alpha1.ReasonPlacementNotFound, degraded.Reason)
				}
				s.unplace("missing-1")
				stay("while they run")
				s.restart()
				stay("when they are restarted")
				require.Empty(s.t, s.wire.Writes(), "there is nothing new to say")
				s.choose("missing-1", "missing-c")
				s.hasNot("missing", "missing-b")
				s.has("missing", "missing-a", "missing-2")
				s.has("missing", "missing-c", "missing-1")
			}},
		{"undecided", "nor does one that has been changed, and has chosen nobody yet", []string{"a", "b"},
			func(s *strategies) {
				s.choose("undecided-1", "undecided-a", "undecided-b")
				s.choose("undecided-2", "undecided-b")
				s.addon("undecided", s.by("undecided-1", "undecided-2"))
				s.has("undecided", "undecided-a", "undecided-1")
				s.has("undecided", "undecided-b", "undecided-1")
				s.undecide("undecided-1")
				for _, restart := range []func(){func() {}, s.restart} {
					restart()
					s.settles()
					require.Equal(s.t, "undecided-1", s.colorOf("undecided", "undecided-a"))
					require.Equal(s.t, "undecided-1", s.colorOf("undecided", "undecided-b"))
				}
				s.choose("undecided-1", "undecided-a")
				s.has("undecided", "undecided-b", "undecided-2")
				s.has("undecided", "undecided-a", "undecided-1")
			}},
		{"uncertain", "who goes by none keeps what it has as it is, while another Placement may have chosen it",
			[]string{"a"}, func(s *strategies) {
				s.choose("uncertain-1", "uncertain-a")
				s.choose("uncertain-2", "uncertain-a")
				s.addon("uncertain", s.by("uncertain-1", "uncertain-2"))
				s.has("uncertain", "uncertain-a", "uncertain-1")
				s.undecide("uncertain-2")
				s.settles()
				s.choose("uncertain-1")
				s.settles()
				was := s.works("uncertain", "uncertain-a")
				require.Len(s.t, was, 1)
				require.Equal(s.t, "uncertain-1", s.colorOf("uncertain", "uncertain-a"),
					"it is not taken back to the defaults meanwhile")
				require.True(s.t, is(s.memberAddon("uncertain", "uncertain-a"), v1alpha1.ConditionAvailable))
				s.choose("uncertain-2", "uncertain-a")
				s.has("uncertain", "uncertain-a", "uncertain-2")
				require.Equal(s.t, was[0].UID, s.works("uncertain", "uncertain-a")[0].UID)
			}},
		{"tomanual", "what was installed by a Placement goes with it, and what a person has made stays", []string{"a", "b"},
			func(s *strategies) {
				s.choose("tomanual-1", "tomanual-a", "tomanual-b")
				s.own("tomanual", "tomanual-b", nil)
				s.addon("tomanual", s.by("tomanual-1"))
				s.has("tomanual", "tomanual-a", "tomanual-1")
				s.has("tomanual", "tomanual-b", "tomanual-1")
				s.change("tomanual", func(a *v1alpha1.AddonSpec) {
					a.Install = v1alpha1.InstallStrategy{Type: v1alpha1.InstallManual}
				})
				s.hasNot("tomanual", "tomanual-a")
				s.has("tomanual", "tomanual-b", "")
			}},
		{"later", "who joins later gets it then, and not before", []string{"a", "b"}, func(s *strategies) {
			s.joined("later-b", metav1.ConditionFalse)
			s.choose("later-1", "later-a", "later-b", "later-nobody")
			s.addon("later", s.by("later-1"))
			s.has("later", "later-a", "later-1")
			s.own("later", "later-b", nil)
			s.settles()
			require.Empty(s.t, s.works("later", "later-b"), "nor what a person has made for it")
			s.joined("later-b", metav1.ConditionTrue)
			s.has("later", "later-b", "later-1")
		}},
		{"leaving", "who leaves gets nothing new, and what it has is for its leave to take", []string{"a", "b", "c"},
			func(s *strategies) {
				s.choose("leaving-1", "leaving-a", "leaving-b")
				s.addon("leaving", s.by("leaving-1"))
				s.has("leaving", "leaving-a", "leaving-1")
				s.has("leaving", "leaving-b", "leaving-1")
				s.leaves("leaving-a")
				s.leaves("leaving-c")
				s.settles()
				require.Equal(s.t, "leaving-1", s.colorOf("leaving", "leaving-a"), "it is as it was")
				s.color("leaving-1", "purple")
				s.own("leaving", "leaving-c", nil)
				s.has("leaving", "leaving-b", "purple")
				s.settles()
				require.Equal(s.t, "leaving-1", s.colorOf("leaving", "leaving-a"))
				require.Empty(s.t, s.works("leaving", "leaving-c"))
				s.choose("leaving-1", "leaving-b", "leaving-c")
				s.settles()
				require.NotNil(s.t, s.memberAddon("leaving", "leaving-a"))
				require.Equal(s.t, "leaving-1", s.colorOf("leaving", "leaving-a"))
				s.restart()
				s.settles()
				require.Empty(s.t, s.wire.Writes())
				require.Equal(s.t, "leaving-1", s.colorOf("leaving", "leaving-a"))
			}},
		{"noaddon", "a MemberAddon without an Addon says so, and begins when there is one", []string{"a"},
			func(s *strategies) {
				m := s.own("noaddon", "noaddon-a", nil)
				said := s.says(m, v1alpha1.ConditionManifestsApplied, metav1.ConditionFalse, v1alpha1.ReasonNoAgent)
				require.Contains(s.t, said.Message, "does not exist: create the Addon")
				s.addon("noaddon", nil)
				s.has("noaddon", "noaddon-a", "")
			}},
		{"nobody", "a MemberAddon in a namespace of no member says so, whenever it is made, and does not keep its Addon",
			[]string{"a"}, func(s *strategies) {
				s.addon("nobody", nil)
				other := func() *v1alpha1.MemberAddon {
					namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "nobody-"}}
					require.NoError(s.t, s.client.Create(s.t.Context(), namespace))
					m := &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: s.name("nobody")}}
					require.NoError(s.t, s.client.Create(s.t.Context(), m))
					return m
				}
				s.says(other(), v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonUnsupported)
				s.stop()
				m := other()
				s.begin()
				s.says(m, v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonUnsupported)
				a := s.get("nobody")
				require.NoError(s.t, s.client.Delete(s.t.Context(), a))
				s.eventually("the Addon is gone", func() bool {
					return s.client.Get(s.t.Context(), client.ObjectKeyFromObject(a), a) != nil
				})
				require.Error(s.t, s.client.Get(s.t.Context(), client.ObjectKeyFromObject(m), m), "they go with it")
			}},
		{"foreign", "a Work of somebody else that has the name is left alone and told of, and no reason to hurry",
			[]string{"a"}, func(s *strategies) {
				theirs := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespaceOf("foreign-a"), Name: "addon-" +
					s.name("foreign") + "-0"}}
				theirs.Spec.Manifests = []workv1alpha1.Manifest{}
				require.NoError(s.t, s.client.Create(s.t.Context(), theirs))
				s.addon("foreign", nil)
				m := s.own("foreign", "foreign-a", nil)
				said := s.says(m, v1alpha1.ConditionManifestsApplied, metav1.ConditionFalse, v1alpha1.ReasonManifestsFailed)
				require.Contains(s.t, said.Message, theirs.Name)
				s.settles()
				is := &workv1alpha1.Work{}
				require.NoError(s.t, s.client.Get(s.t.Context(), client.ObjectKeyFromObject(theirs), is))
				require.Equal(s.t, theirs.ResourceVersion, is.ResourceVersion)
				require.NoError(s.t, s.client.Delete(s.t.Context(), theirs))
				s.has("foreign", "foreign-a", "")
			}},
	}
	h := newHub(t)
	h.obey()
	var names []string
	for _, row := range rows {
		names = append(names, row.name)
		for _, m := range row.members {
			h.members(row.name + "-" + m)
		}
	}
	s := &strategies{hub: h, options: h.painters(names...)}
	s.begin()
	for _, row := range rows {
		testkit.Step(t, row.name, func() {
			t.Log(row.reason)
			row.do(s)
		})
	}
}
