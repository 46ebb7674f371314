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

// waitUntilQuiet waits until nothing is written any more.
func (s *strategies) waitUntilQuiet() { s.T.Helper(); s.quiet(s.T) }

// TestStrategies checks the tables of package install, row by row. Each row has a separate add-on and Placements with
// the name of the row, and the members in its list.
func TestStrategies(t *testing.T) { testkit.Virtual(t, testStrategies) }

func testStrategies(t *testing.T) {
	rows := []struct {
		name, reason string
		members      []string
		do           func(s *strategies)
	}{
		{"manual", "only members with a MemberAddon of a user have the add-on, with the defaults", []string{"a", "b"},
			func(s *strategies) {
				s.addon("manual", nil)
				s.createMemberAddon("manual", "manual-a", nil)
				s.waitForColor("manual", "manual-a", "")
				s.waitUntilQuiet()
				require.Empty(s.T, s.installedBy("manual", "manual-a"))
				require.Nil(s.T, s.memberAddon("manual", "manual-b"))
			}},
		{"chosen", "the add-on is installed and removed with the selection", []string{"a", "b"}, func(s *strategies) {
			s.choose("chosen-1", "chosen-a")
			s.addon("chosen", s.byPlacements("chosen-1"))
			s.waitForColor("chosen", "chosen-a", "chosen-1")
			require.Equal(s.T, s.Namespace+"/chosen-1", s.installedBy("chosen", "chosen-a"))
			s.waitForPlacement("chosen", "chosen-a", "chosen-1")
			s.choose("chosen-1", "chosen-b")
			s.waitForColor("chosen", "chosen-b", "chosen-1")
			s.waitForRemoval("chosen", "chosen-a")
		}},
		{"byhand",
			"a MemberAddon of a user is kept and has the configuration of a Placement that selects it",
			[]string{"a", "b"}, func(s *strategies) {
				s.choose("byhand-1", "byhand-b")
				s.addon("byhand", s.byPlacements("byhand-1"))
				s.createMemberAddon("byhand", "byhand-a", nil)
				s.waitForColor("byhand", "byhand-a", "")
				s.waitForColor("byhand", "byhand-b", "byhand-1")
				s.choose("byhand-1", "byhand-a", "byhand-b")
				s.waitForColor("byhand", "byhand-a", "byhand-1")
				require.Empty(s.T, s.installedBy("byhand", "byhand-a"))
				s.waitForPlacement("byhand", "byhand-a", "byhand-1")
				s.choose("byhand-1", "byhand-b")
				s.waitForColor("byhand", "byhand-a", "")
				s.waitForPlacement("byhand", "byhand-a", "")
			}},
		{"mine", "a MemberAddon without the annotation belongs to a user", []string{"a"}, func(s *strategies) {
			s.choose("mine-1", "mine-a")
			s.addon("mine", s.byPlacements("mine-1"))
			s.waitForColor("mine", "mine-a", "mine-1")
			m := s.memberAddon("mine", "mine-a")
			before := m.DeepCopy()
			delete(m.Annotations, v1alpha1.InstalledByAnnotation)
			require.NoError(s.T, s.Client.Patch(s.T.Context(), m, client.MergeFrom(before)))
			s.choose("mine-1")
			s.waitForColor("mine", "mine-a", "")
			require.Equal(s.T, m.UID, s.memberAddon("mine", "mine-a").UID)
		}},
		{"first", "the first Placement in the list applies, also to existing MemberAddons", []string{"a", "b"},
			func(s *strategies) {
				s.choose("first-1", "first-a")
				s.choose("first-2", "first-a", "first-b")
				s.addon("first", s.byPlacements("first-1", "first-2"))
				s.waitForColor("first", "first-a", "first-1")
				s.waitForColor("first", "first-b", "first-2")
				previous := s.memberAddon("first", "first-b").UID
				s.choose("first-1", "first-a", "first-b")
				s.waitForColor("first", "first-b", "first-1")
				require.Equal(s.T, s.Namespace+"/first-1", s.installedBy("first", "first-b"))
				require.Equal(s.T, previous, s.memberAddon("first", "first-b").UID, "want the same MemberAddon")
				s.choose("first-1", "first-b")
				s.waitForColor("first", "first-a", "first-2")
				require.Equal(s.T, s.Namespace+"/first-2", s.installedBy("first", "first-a"))
			}},
		{"missing", "a missing Placement removes no add-on, and the next Placement does not apply",
			[]string{"a", "b", "c"}, func(s *strategies) {
				s.choose("missing-1", "missing-a", "missing-b", "missing-c")
				s.choose("missing-2", "missing-a", "missing-c")
				s.createMemberAddon("missing", "missing-c", nil)
				s.addon("missing", s.byPlacements("missing-1", "missing-2"))
				all := []string{"missing-a", "missing-b", "missing-c"}
				for _, m := range all {
					s.waitForColor("missing", m, "missing-1")
				}
				stay := func(when string) {
					s.waitUntilQuiet()
					for _, m := range all {
						require.Equal(s.T, "missing-1", s.colorOf("missing", m), "%s: %s", m, when)
						require.Equal(s.T, s.Namespace+"/missing-1", s.memberAddon("missing", m).Status.Placement, "%s: %s", m, when)
					}
					degraded := meta.FindStatusCondition(s.get("missing").Status.Conditions, v1alpha1.ConditionDegraded)
					require.Equal(s.T, v1alpha1.ReasonPlacementNotFound, degraded.Reason)
				}
				s.deletePlacement("missing-1")
				stay("before a restart")
				s.restart()
				stay("after a restart")
				require.Empty(s.T, s.wire.Writes(), "a restart must not write")
				s.choose("missing-1", "missing-c")
				s.waitForRemoval("missing", "missing-b")
				s.waitForColor("missing", "missing-a", "missing-2")
				s.waitForColor("missing", "missing-c", "missing-1")
			}},
		{"undecided", "a changed Placement without a decision removes no add-on", []string{"a", "b"},
			func(s *strategies) {
				s.choose("undecided-1", "undecided-a", "undecided-b")
				s.choose("undecided-2", "undecided-b")
				s.addon("undecided", s.byPlacements("undecided-1", "undecided-2"))
				s.waitForColor("undecided", "undecided-a", "undecided-1")
				s.waitForColor("undecided", "undecided-b", "undecided-1")
				s.removeDecision("undecided-1")
				for _, restart := range []func(){func() {}, s.restart} {
					restart()
					s.waitUntilQuiet()
					require.Equal(s.T, "undecided-1", s.colorOf("undecided", "undecided-a"))
					require.Equal(s.T, "undecided-1", s.colorOf("undecided", "undecided-b"))
				}
				s.choose("undecided-1", "undecided-a")
				s.waitForColor("undecided", "undecided-b", "undecided-2")
				s.waitForColor("undecided", "undecided-a", "undecided-1")
			}},
		{"uncertain", "an add-on stays unchanged while an undecided Placement can select its member",
			[]string{"a"}, func(s *strategies) {
				s.choose("uncertain-1", "uncertain-a")
				s.choose("uncertain-2", "uncertain-a")
				s.addon("uncertain", s.byPlacements("uncertain-1", "uncertain-2"))
				s.waitForColor("uncertain", "uncertain-a", "uncertain-1")
				s.removeDecision("uncertain-2")
				s.waitUntilQuiet()
				s.choose("uncertain-1")
				s.waitUntilQuiet()
				previous := s.works("uncertain", "uncertain-a")
				require.Len(s.T, previous, 1)
				require.Equal(s.T, "uncertain-1", s.colorOf("uncertain", "uncertain-a"),
					"want the color of the previous Placement")
				require.True(s.T, isTrue(s.memberAddon("uncertain", "uncertain-a"), v1alpha1.ConditionAvailable))
				s.choose("uncertain-2", "uncertain-a")
				s.waitForColor("uncertain", "uncertain-a", "uncertain-2")
				require.Equal(s.T, previous[0].UID, s.works("uncertain", "uncertain-a")[0].UID)
			}},
		{"tomanual", "type Manual removes add-ons of Placements and keeps MemberAddons of users", []string{"a", "b"},
			func(s *strategies) {
				s.choose("tomanual-1", "tomanual-a", "tomanual-b")
				s.createMemberAddon("tomanual", "tomanual-b", nil)
				s.addon("tomanual", s.byPlacements("tomanual-1"))
				s.waitForColor("tomanual", "tomanual-a", "tomanual-1")
				s.waitForColor("tomanual", "tomanual-b", "tomanual-1")
				s.change("tomanual", func(a *v1alpha1.AddonSpec) {
					a.Install = v1alpha1.InstallStrategy{Type: v1alpha1.InstallManual}
				})
				s.waitForRemoval("tomanual", "tomanual-a")
				s.waitForColor("tomanual", "tomanual-b", "")
			}},
		{"later", "a member gets the add-on after it has joined", []string{"a", "b"}, func(s *strategies) {
			s.joined("later-b", metav1.ConditionFalse)
			s.choose("later-1", "later-a", "later-b", "later-nobody")
			s.addon("later", s.byPlacements("later-1"))
			s.waitForColor("later", "later-a", "later-1")
			s.createMemberAddon("later", "later-b", nil)
			s.waitUntilQuiet()
			require.Empty(s.T, s.works("later", "later-b"),
				"want no Works for the MemberAddon of a user before the member has joined")
			s.joined("later-b", metav1.ConditionTrue)
			s.waitForColor("later", "later-b", "later-1")
		}},
		{"leaving", "a leaving member gets nothing new and keeps existing add-ons", []string{"a", "b", "c"},
			func(s *strategies) {
				s.choose("leaving-1", "leaving-a", "leaving-b")
				s.addon("leaving", s.byPlacements("leaving-1"))
				s.waitForColor("leaving", "leaving-a", "leaving-1")
				s.waitForColor("leaving", "leaving-b", "leaving-1")
				s.startLeave("leaving-a")
				s.startLeave("leaving-c")
				s.waitUntilQuiet()
				require.Equal(s.T, "leaving-1", s.colorOf("leaving", "leaving-a"), "want no change on a leaving member")
				s.color("leaving-1", "purple")
				s.createMemberAddon("leaving", "leaving-c", nil)
				s.waitForColor("leaving", "leaving-b", "purple")
				s.waitUntilQuiet()
				require.Equal(s.T, "leaving-1", s.colorOf("leaving", "leaving-a"))
				require.Empty(s.T, s.works("leaving", "leaving-c"))
				s.choose("leaving-1", "leaving-b", "leaving-c")
				s.waitUntilQuiet()
				require.NotNil(s.T, s.memberAddon("leaving", "leaving-a"))
				require.Equal(s.T, "leaving-1", s.colorOf("leaving", "leaving-a"))
				s.restart()
				s.waitUntilQuiet()
				require.Empty(s.T, s.wire.Writes())
				require.Equal(s.T, "leaving-1", s.colorOf("leaving", "leaving-a"))
			}},
		{"noaddon", "a MemberAddon without an Addon reports this until the Addon is created", []string{"a"},
			func(s *strategies) {
				m := s.createMemberAddon("noaddon", "noaddon-a", nil)
				condition := s.requireCondition(m, v1alpha1.ConditionManifestsApplied, metav1.ConditionFalse,
					v1alpha1.ReasonNoAgent)
				require.Contains(s.T, condition.Message, "does not exist: create the Addon")
				s.addon("noaddon", nil)
				s.waitForColor("noaddon", "noaddon-a", "")
			}},
		{"unassigned", "a MemberAddon in a namespace without a member is reported and does not block its Addon",
			[]string{"a"}, func(s *strategies) {
				s.addon("unassigned", nil)
				other := func() *v1alpha1.MemberAddon {
					namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "nobody-"}}
					require.NoError(s.T, s.Client.Create(s.T.Context(), namespace))
					m := &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: s.name("unassigned")}}
					require.NoError(s.T, s.Client.Create(s.T.Context(), m))
					return m
				}
				s.requireCondition(other(), v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonUnsupported)
				s.stop()
				m := other()
				s.begin()
				s.requireCondition(m, v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonUnsupported)
				a := s.get("unassigned")
				require.NoError(s.T, s.Client.Delete(s.T.Context(), a))
				s.Holds("the Addon is gone", func() bool {
					return s.Client.Get(s.T.Context(), client.ObjectKeyFromObject(a), a) != nil
				})
				require.Error(s.T, s.Client.Get(s.T.Context(), client.ObjectKeyFromObject(m), m),
					"want the MemberAddon to be deleted with the Addon")
			}},
		{"foreign", "a foreign Work with the name is reported and not changed, without fast retries",
			[]string{"a"}, func(s *strategies) {
				foreign := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespaceOf("foreign-a"), Name: "addon-" +
					s.name("foreign") + "-0"}}
				foreign.Spec.Manifests = []workv1alpha1.Manifest{}
				require.NoError(s.T, s.Client.Create(s.T.Context(), foreign))
				s.addon("foreign", nil)
				m := s.createMemberAddon("foreign", "foreign-a", nil)
				condition := s.requireCondition(m, v1alpha1.ConditionManifestsApplied, metav1.ConditionFalse,
					v1alpha1.ReasonManifestsFailed)
				require.Contains(s.T, condition.Message, foreign.Name)
				s.waitUntilQuiet()
				current := &workv1alpha1.Work{}
				require.NoError(s.T, s.Client.Get(s.T.Context(), client.ObjectKeyFromObject(foreign), current))
				require.Equal(s.T, foreign.ResourceVersion, current.ResourceVersion)
				require.NoError(s.T, s.Client.Delete(s.T.Context(), foreign))
				s.waitForColor("foreign", "foreign-a", "")
			}},
	}
	h := newHub(t)
	h.runAgents()
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
