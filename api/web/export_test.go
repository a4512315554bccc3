package web

// What tests of the words and numbers on the pages need to see.
var (
	Latency      = latency
	Milliseconds = milliseconds
	Percent      = percent
	Coverage     = coverage
	Size         = size
	Grouped      = grouped
	Ago          = ago
	Until        = until
	Stamp        = stamp
	Machine      = machine
	TagOf        = tagOf
	Means        = means
	Advice       = advice
)

// WordedClasses is how many classes have words of their own.
func WordedClasses() int { return len(meanings) }
