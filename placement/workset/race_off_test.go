//go:build !race

package workset_test

const raceDetector = false

// fleetSize is how many members TestFleet has.
const fleetSize = 200

// joinedSize is how many members TestJoined has, of which half are chosen.
const joinedSize = 20
