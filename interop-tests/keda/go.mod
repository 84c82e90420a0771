// Names the version; what it needs stands in its own go.mod and go.sum.
module keda

go 1.26.0

require github.com/kedacore/keda/v2 v2.21.0
