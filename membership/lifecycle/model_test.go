package lifecycle

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/membership"
)

var moves, mishaps = func() (uint8, uint8) {
	a, _ := strconv.Atoi(os.Getenv("MOVES"))
	b, _ := strconv.Atoi(os.Getenv("MISHAPS"))
	return uint8(a), uint8(b)
}()

func newMachine() *machine {
	return &machine{hub: NextHub, door: NextDoor, agent: NextAgent, verdict: membership.Hold, moves: moves, mishaps: mishaps}
}

var starts = []world{
	{net: true},
	{net: true, member: true, accepted: yesAccepted},
}

func TestModel(t *testing.T) {
	m := newMachine()
	k, broken := m.explore(starts, func(from, to *world) fault { return "" })
	t.Logf("%d states", len(k.worlds))
	for wrong, trace := range broken {
		t.Errorf("%s:\n%s", wrong, trace)
	}
	require.Empty(t, broken)
}
