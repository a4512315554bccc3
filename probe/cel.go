package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
)

// Bounds on the evaluation of one CEL expression. The cost is counted by the library, roughly a visited value each.
const (
	maxCELCost   = 2_000_000
	maxCELMemory = 64 << 20 // bytes, as the library estimates them
	celPatience  = time.Second
	celInterrupt = 100 // iterations between two looks at the clock
)

// celEnv is what an expression may speak of: CEL's standard functions and
//
//	result   the result, null when the answer is an error; numbers are int where they fit 64 bits, else double
//	error    {code, message, data}, null when the answer is a result
//	latency  a duration
//	status   of HTTP, 0 over other transports
var celEnv = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("result", cel.DynType),
		cel.Variable("error", cel.DynType),
		cel.Variable("latency", cel.DurationType),
		cel.Variable("status", cel.IntType),
		cel.CrossTypeNumericComparisons(true),
	)
})

// celProgram is a compiled expression.
type celProgram struct {
	cel.Program
	ofError, ofResult bool // what it speaks of
	regex             int  // size of its compiled regexes together
}

var celPrograms memo[celProgram]

// compileCEL reads an expression; the error says what is wrong with it, and where.
func compileCEL(text string) (celProgram, error) {
	env, err := celEnv()
	if err != nil {
		return celProgram{}, err
	}
	compiled, issues := env.Compile(text)
	if issues.Err() != nil {
		return celProgram{}, celProblem(issues)
	}
	if out := compiled.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return celProgram{}, fmt.Errorf("must be true or false, but is of type %s", out)
	}
	program, err := env.Program(compiled, cel.CostLimit(maxCELCost), cel.MemoryLimit(maxCELMemory), cel.InterruptCheckFrequency(celInterrupt))
	if err != nil {
		return celProgram{}, errors.New(clip(err.Error(), 200))
	}
	p := celProgram{Program: program}
	if p.regex, err = regexesIn(compiled.NativeRep().Expr()); err != nil {
		return celProgram{}, err
	}
	for _, reference := range compiled.NativeRep().ReferenceMap() {
		p.ofError = p.ofError || reference.Name == "error"
		p.ofResult = p.ofResult || reference.Name == "result"
	}
	return p, nil
}

// regexesIn returns the size of the regexes of an expression. The library counts the length of what is written, which may
// be a hundredth of what it compiles to, and looks at no clock while it searches. A regex that is no literal would be one
// that the endpoint chooses.
func regexesIn(expression ast.Expr) (size int, err error) {
	ast.PostOrderVisit(expression, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != "matches" {
			return
		}
		args := e.AsCall().Args()
		last := args[len(args)-1]
		if last.Kind() != ast.LiteralKind {
			err = errors.New("matches() takes a regex written as a literal only")
			return
		}
		text, _ := last.AsLiteral().Value().(string)
		regex, bad := regexes.get(text, compileRegex)
		if bad != nil {
			err = errors.New("cannot be read as RE2: " + regexWords(bad))
			return
		}
		size += regex.size
	}))
	return size, err
}

// celProblem words the mistakes of an expression, the first three of them.
func celProblem(issues *cel.Issues) error {
	var words []string
	for _, e := range issues.Errors()[:min(len(issues.Errors()), 3)] {
		message, _, _ := strings.Cut(e.Message, " expecting {") // all the tokens that there are
		words = append(words, fmt.Sprintf("line %d, column %d: %s", e.Location.Line(), e.Location.Column()+1, tidy(message, 200)))
	}
	return errors.New(strings.Join(words, "; "))
}

// checkCEL evaluates the expression of e.
func (e Expect) checkCEL(a seen) error {
	program, err := celPrograms.get(e.CEL, compileCEL)
	if err != nil {
		return fmt.Errorf("the CEL expression cannot be used: %w", err)
	}
	if program.regex > 0 && a.size() > maxRegexWork/program.regex {
		return fmt.Errorf("the answer is too large to be searched with the regexes of %s: %d bytes", clip(e.CEL, 100), a.size())
	}
	variables, err := a.variables(program)
	if err != nil {
		return err
	}
	// A context of its own: the evaluation takes our time, not the endpoint's.
	ctx, cancel := context.WithTimeout(context.Background(), celPatience)
	defer cancel()
	out, _, err := program.ContextEval(ctx, variables)
	switch {
	case err != nil:
		return fmt.Errorf("%s cannot be evaluated: %s; %s", clip(e.CEL, 100), clip(err.Error(), 120), a.words())
	case out == types.True:
		return nil
	case out != types.False:
		return fmt.Errorf("%s is neither true nor false; %s", clip(e.CEL, 100), a.words())
	default:
		return fmt.Errorf("%s is false; %s", clip(e.CEL, 100), a.words())
	}
}

// variables returns what an expression speaks of, decoded as far as p needs it.
func (a seen) variables(p celProgram) (map[string]any, error) {
	variables := map[string]any{"result": nil, "error": nil, "latency": a.latency, "status": int64(a.status)}
	var err error
	if p.ofResult && a.rpc == nil {
		if variables["result"], err = takeApart(a.result); err != nil {
			return nil, err
		}
	}
	if !p.ofError || a.rpc == nil {
		return variables, nil
	}
	failure := map[string]any{"code": int64(a.rpc.Code), "message": a.rpc.Message, "data": nil}
	if len(a.rpc.Data) > 0 && len(a.rpc.Data) <= maxLookedInto {
		failure["data"], _ = decodeJSON(a.rpc.Data) // it is JSON, as the whole answer is
	}
	variables["error"] = failure
	return variables, nil
}

// size is how many bytes came.
func (a seen) size() int {
	if a.rpc != nil {
		return len(a.rpc.Message) + len(a.rpc.Data)
	}
	return len(a.result)
}

// words says what came.
func (a seen) words() string {
	if a.rpc != nil {
		return fmt.Sprintf("the error is %d %s", a.rpc.Code, clip(a.rpc.Message, 120))
	}
	return "the result is " + shownJSON(a.result)
}
