module versions

go 1.24
