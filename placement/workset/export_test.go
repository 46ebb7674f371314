package workset

// Gist is for tests of how often a status is written.
var Gist = gist
