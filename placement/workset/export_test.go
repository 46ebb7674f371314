package workset

// Gist exports gist for tests of the frequency of status writes.
var Gist = urgentParts
