// Texts of the form that makes and changes entities.

export const S = {
  title: "New entity",
};
