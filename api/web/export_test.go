package web

// What tests of the words and numbers on the pages need to see.
var (
	English = english
	Grouped = grouped
	Machine = machine
	TagOf   = tagOf
	Means   = english.means
	Advice  = english.advice
)

// WordedClasses is how many classes have words of their own.
func WordedClasses() int { return len(meanings) }
