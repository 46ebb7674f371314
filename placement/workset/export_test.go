package workset

// UrgentParts exports urgentParts for tests of the frequency of status writes.
var UrgentParts = urgentParts
